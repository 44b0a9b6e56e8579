//! How each kind of program reads a packet from its IP header on.

use aya_ebpf::programs::{SkBuffContext, TcContext};

use super::packet::{Other, PROTOCOL_TCP};

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_VLAN: u16 = 0x8100;
const ETHERTYPE_QINQ: u16 = 0x88a8;

/// What a socket filter loads at once: an IPv4 header without options and a TCP header, or an IPv6
/// header. No TCP packet is shorter.
const WINDOW: usize = 40;

/// Bytes of a packet; offsets count from its IP header.
pub(super) trait IpBytes {
    /// Where the IP header starts in the program's view of the packet.
    fn start(&self) -> u32;
    /// Whether it is an IPv6 header.
    fn is_ipv6(&self) -> bool;
    /// Bytes from the IP header to the packet's end, padding included.
    fn len(&self) -> u32;
    /// Bytes at a constant offset within the first [`WINDOW`].
    fn near<const AT: usize, const N: usize>(&self) -> Result<[u8; N], Other>;
    /// Bytes anywhere.
    fn far<const N: usize>(&self, offset: u32) -> Result<[u8; N], Other>;
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

/// A packet at a TCX hook.
pub(super) struct Frame<'a> {
    ctx: &'a TcContext,
    start: u32,
    ipv6: bool,
}

/// Bytes of the packet: directly where they lie in its linear part, which is nearly always, else
/// through the helper that follows fragments.
#[inline(always)]
fn read<const N: usize>(ctx: &TcContext, offset: u32) -> Result<[u8; N], Other> {
    let start = ctx.data() + offset as usize;
    if start + N <= ctx.data_end() {
        // SAFETY: the bytes lie between `data` and `data_end`, as the verifier also demands; an
        // array of bytes has no alignment.
        return Ok(unsafe { *(start as *const [u8; N]) });
    }
    ctx.load::<[u8; N]>(offset as usize).map_err(|_| Other::Unparsed)
}

impl<'a> Frame<'a> {
    /// Finds the IP header behind a link-layer header of `link_header` bytes.
    #[inline(always)]
    pub(super) fn new(ctx: &'a TcContext, link_header: u32) -> Result<Self, Other> {
        if link_header == 0 {
            let [first] = read::<1>(ctx, 0)?;
            return Ok(Self { ctx, start: 0, ipv6: version_of(first)? });
        }
        let mut start = link_header;
        let mut ethertype = u16::from_be_bytes(read(ctx, link_header - 2)?);
        // The outermost tag normally travels in metadata; an inner one (QinQ) lies in the packet.
        if is_tag(ethertype) {
            ethertype = u16::from_be_bytes(read(ctx, link_header + 2)?);
            start = link_header + 4;
        }
        Ok(Self { ctx, start, ipv6: version(ethertype)? })
    }
}

impl IpBytes for Frame<'_> {
    #[inline(always)]
    fn start(&self) -> u32 {
        self.start
    }

    #[inline(always)]
    fn is_ipv6(&self) -> bool {
        self.ipv6
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        self.ctx.len() - self.start
    }

    #[inline(always)]
    fn near<const AT: usize, const N: usize>(&self) -> Result<[u8; N], Other> {
        read(self.ctx, self.start + AT as u32)
    }

    #[inline(always)]
    fn far<const N: usize>(&self, offset: u32) -> Result<[u8; N], Other> {
        read(self.ctx, self.start + offset)
    }
}

/// A packet at a packet socket of type `SOCK_DGRAM`: it begins after the link-layer header, whatever
/// that is. Socket filters may not look at packet memory, so that the first bytes are loaded once.
pub(super) struct Datagram<'a> {
    ctx: &'a SkBuffContext,
    start: u32,
    ipv6: bool,
    window: [u8; WINDOW],
}

#[inline(always)]
fn load<const N: usize>(ctx: &SkBuffContext, offset: u32) -> Result<[u8; N], Other> {
    ctx.load::<[u8; N]>(offset as usize).map_err(|_| Other::Unparsed)
}

impl<'a> Datagram<'a> {
    /// Loads the first bytes of an IP packet.
    #[inline(always)]
    pub(super) fn new(ctx: &'a SkBuffContext) -> Result<Self, Other> {
        // SAFETY: the kernel hands the program a valid context.
        let ethertype = u16::from_be(unsafe { (*ctx.skb.skb).protocol } as u16);
        let (start, ipv6) =
            if is_tag(ethertype) { Self::behind_tag(ctx)? } else { (0, version(ethertype)?) };
        match load::<WINDOW>(ctx, start) {
            Ok(window) => Ok(Self { ctx, start, ipv6, window }),
            Err(_) => Err(Self::short(ctx, start)),
        }
    }

    /// On receipt the view of a packet with a second tag (QinQ) begins at that tag; when sent with a
    /// tag inside, it begins behind it.
    #[inline(always)]
    fn behind_tag(ctx: &SkBuffContext) -> Result<(u32, bool), Other> {
        let tag = load::<4>(ctx, 0)?;
        match version(u16::from_be_bytes([tag[2], tag[3]])) {
            Ok(ipv6) => Ok((4, ipv6)),
            Err(_) => Ok((0, version_of(tag[0])?)),
        }
    }

    /// What is shorter than the smallest TCP packet is none, or a fragment of one.
    #[inline(always)]
    fn short(ctx: &SkBuffContext, start: u32) -> Other {
        match load::<1>(ctx, start + 9) {
            Ok([PROTOCOL_TCP]) => Other::Unparsed,
            _ => Other::Foreign,
        }
    }
}

impl IpBytes for Datagram<'_> {
    #[inline(always)]
    fn start(&self) -> u32 {
        self.start
    }

    #[inline(always)]
    fn is_ipv6(&self) -> bool {
        self.ipv6
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        self.ctx.len() - self.start
    }

    #[inline(always)]
    fn near<const AT: usize, const N: usize>(&self) -> Result<[u8; N], Other> {
        const { assert!(AT + N <= WINDOW) };
        let mut bytes = [0; N];
        let mut index = 0;
        while index < N {
            bytes[index] = self.window[AT + index];
            index += 1;
        }
        Ok(bytes)
    }

    #[inline(always)]
    fn far<const N: usize>(&self, offset: u32) -> Result<[u8; N], Other> {
        load(self.ctx, self.start + offset)
    }
}
