//! How each kind of program reads a packet from its IP header on.

use core::{arch::asm, mem::MaybeUninit};

use aya_ebpf::{bindings::__sk_buff, helpers::bpf_skb_load_bytes};

use super::packet::{Other, PROTOCOL_TCP};

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_VLAN: u16 = 0x8100;
const ETHERTYPE_QINQ: u16 = 0x88a8;

/// Bytes before the IP header on Ethernet and loopback (RFC 894).
pub(super) const ETHERNET_HEADER: usize = 14;
/// Bytes of a VLAN tag.
const TAG: u32 = 4;

/// Words read of every packet: an IPv4 header without options and a TCP header, or an IPv6 header.
/// No TCP packet is shorter.
const HEAD_WORDS: usize = 10;
const HEAD: usize = HEAD_WORDS * 4;

/// The first bytes of a packet's IP header, and what follows.
pub(super) trait Head {
    /// The word at `4 * INDEX`, of the first [`HEAD_WORDS`], in network byte order.
    fn word<const INDEX: usize>(&self) -> u32;
}

/// A packet from its IP header on.
pub(super) struct IpPacket<H> {
    skb: *mut __sk_buff,
    start: u32,
    ipv6: bool,
    head: H,
}

impl<H: Head> IpPacket<H> {
    /// Whether it is IPv6.
    #[inline(always)]
    pub(super) fn is_ipv6(&self) -> bool {
        self.ipv6
    }

    /// Where the IP header starts in the program's view of the packet.
    #[inline(always)]
    pub(super) fn start(&self) -> u32 {
        self.start
    }

    /// Bytes from the IP header to the packet's end, padding included.
    #[inline(always)]
    pub(super) fn len(&self) -> u32 {
        // SAFETY: the kernel hands the program a valid context.
        unsafe { (*self.skb).len - self.start }
    }

    /// A word of the head, in network byte order.
    #[inline(always)]
    pub(super) fn word<const INDEX: usize>(&self) -> u32 {
        const { assert!(INDEX < HEAD_WORDS) };
        self.head.word::<INDEX>()
    }

    /// `N` words anywhere; `offset` counts from the IP header.
    #[inline(always)]
    pub(super) fn far<const N: usize>(&self, offset: u32) -> Result<[u32; N], Other> {
        load(self.skb, self.start + offset).ok_or(Other::Unparsed)
    }
}

/// Values that any bytes make a valid one of.
trait Plain: Copy {}
impl Plain for u8 {}
impl<const N: usize> Plain for [u8; N] {}
impl<const N: usize> Plain for [u32; N] {}

/// Bytes anywhere in a packet, through the helper that follows its fragments.
#[inline(always)]
fn load<T: Plain>(skb: *mut __sk_buff, offset: u32) -> Option<T> {
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: the destination is valid for the length given.
    let result = unsafe {
        bpf_skb_load_bytes(skb.cast(), offset, value.as_mut_ptr().cast(), size_of::<T>() as u32)
    };
    // SAFETY: the helper has written every byte, and any bytes are a valid value.
    (result == 0).then(|| unsafe { value.assume_init() })
}

fn is_tag(ethertype: u16) -> bool {
    ethertype == ETHERTYPE_VLAN || ethertype == ETHERTYPE_QINQ
}

/// True for IPv6, false for IPv4, by what is said to follow.
#[inline(always)]
fn version(ethertype: u16) -> Result<bool, Other> {
    match ethertype {
        ETHERTYPE_IPV4 => Ok(false),
        ETHERTYPE_IPV6 => Ok(true),
        _ => Err(Other::Foreign),
    }
}

/// The same by the header's first byte.
#[inline(always)]
fn version_of(first: u8) -> Result<bool, Other> {
    match first >> 4 {
        4 => Ok(false),
        6 => Ok(true),
        _ => Err(Other::Foreign),
    }
}

/// A head in the packet's own memory: TCX programs may look at the part of a packet that lies there
/// in one piece.
pub(super) struct Direct(usize);

impl Head for Direct {
    #[inline(always)]
    fn word<const INDEX: usize>(&self) -> u32 {
        let word: u64;
        // `core` would read byte by byte, since nothing promises it an aligned address; the kernel
        // does promise one (`NET_IP_ALIGN`) where its CPU needs it.
        // SAFETY: `direct` has compared the head's end with the packet's, as the verifier demands.
        unsafe {
            asm!(
                "{0} = *(u32 *)({1} + {2})",
                out(reg) word,
                in(reg) self.0,
                const INDEX * 4,
                options(pure, readonly, nostack)
            );
        }
        word as u32
    }
}

/// A packet behind a link-layer header of `LINK` bytes, if its head lies in one piece and no tag lies
/// in between: nearly every packet. `None` says to look closer.
#[inline(always)]
pub(super) fn direct<const LINK: usize>(
    skb: *mut __sk_buff,
) -> Option<Result<IpPacket<Direct>, Other>> {
    // SAFETY: the kernel hands the program a valid context.
    let (data, end) = unsafe { ((*skb).data as usize, (*skb).data_end as usize) };
    if data + LINK + HEAD > end {
        return None;
    }
    let ipv6 = if LINK == 0 {
        // SAFETY: the byte lies before the head's end.
        version_of(unsafe { *(data as *const u8) })
    } else {
        // SAFETY: both bytes lie before the head's end.
        let ethertype = u16::from_be_bytes(unsafe { *((data + LINK - 2) as *const [u8; 2]) });
        if is_tag(ethertype) {
            return None;
        }
        version(ethertype)
    };
    let packet = |ipv6| IpPacket { skb, start: LINK as u32, ipv6, head: Direct(data + LINK) };
    Some(ipv6.map(packet))
}

/// A head that was copied.
pub(super) struct Copied([u32; HEAD_WORDS]);

impl Head for Copied {
    #[inline(always)]
    fn word<const INDEX: usize>(&self) -> u32 {
        self.0[INDEX]
    }
}

#[inline(always)]
fn copied(skb: *mut __sk_buff, start: u32, ipv6: bool) -> Result<IpPacket<Copied>, Other> {
    match load(skb, start) {
        Some(words) => Ok(IpPacket { skb, start, ipv6, head: Copied(words) }),
        None => Err(short(skb, start)),
    }
}

/// What is shorter than the smallest TCP packet is none, or a fragment of one.
#[inline(always)]
fn short(skb: *mut __sk_buff, start: u32) -> Other {
    match load::<u8>(skb, start + 9) {
        Some(PROTOCOL_TCP) => Other::Unparsed,
        _ => Other::Foreign,
    }
}

/// An Ethernet frame that [`direct`] did not read.
#[inline(always)]
pub(super) fn frame(skb: *mut __sk_buff) -> Result<IpPacket<Copied>, Other> {
    let mut start = ETHERNET_HEADER as u32;
    let mut ethertype = load::<[u8; 2]>(skb, start - 2).ok_or(Other::Foreign)?;
    // The outermost tag normally travels in metadata; an inner one (QinQ) lies in the packet.
    if is_tag(u16::from_be_bytes(ethertype)) {
        ethertype = load(skb, start + TAG - 2).ok_or(Other::Foreign)?;
        start += TAG;
    }
    copied(skb, start, version(u16::from_be_bytes(ethertype))?)
}

/// A packet without link-layer header that [`direct`] did not read.
#[inline(always)]
pub(super) fn bare(skb: *mut __sk_buff) -> Result<IpPacket<Copied>, Other> {
    let first = load::<u8>(skb, 0).ok_or(Other::Foreign)?;
    copied(skb, 0, version_of(first)?)
}

/// A packet at a packet socket of type `SOCK_DGRAM`: it begins after the link-layer header, whatever
/// that is. Socket filters may not look at packet memory.
#[inline(always)]
pub(super) fn datagram(skb: *mut __sk_buff) -> Result<IpPacket<Copied>, Other> {
    // SAFETY: the kernel hands the program a valid context.
    let ethertype = u16::from_be(unsafe { (*skb).protocol } as u16);
    let (start, ipv6) = if is_tag(ethertype) { behind_tag(skb)? } else { (0, version(ethertype)?) };
    copied(skb, start, ipv6)
}

/// On receipt the view of a packet with a second tag (QinQ) begins at that tag; when sent with a tag
/// inside, it begins behind it.
#[inline(always)]
fn behind_tag(skb: *mut __sk_buff) -> Result<(u32, bool), Other> {
    let tag = load::<[u8; 4]>(skb, 0).ok_or(Other::Unparsed)?;
    match version(u16::from_be_bytes([tag[2], tag[3]])) {
        Ok(ipv6) => Ok((TAG, ipv6)),
        Err(_) => Ok((0, version_of(tag[0])?)),
    }
}
