//! From the start of a frame to its network header, for the link types of the tcpdump registry
//! (<https://www.tcpdump.org/linktypes.html>).

use super::packet::Other;

/// A link type of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: protocol family in the byte order of the capturing host.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// IP without a link header.
    pub const RAW: Self = Self(101);
    /// OpenBSD loopback: protocol family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux "cooked" capture, version 1.
    pub const LINUX_SLL: Self = Self(113);
    /// IPv4 without a link header.
    pub const IPV4: Self = Self(228);
    /// IPv6 without a link header.
    pub const IPV6: Self = Self(229);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);

    /// Those that are read.
    pub const SUPPORTED: [Self; 8] = [
        Self::NULL,
        Self::ETHERNET,
        Self::RAW,
        Self::LOOP,
        Self::LINUX_SLL,
        Self::IPV4,
        Self::IPV6,
        Self::LINUX_SLL2,
    ];
}

/// What a cooked header tells beyond the interface that the file names (which is `any`): enough to
/// tell two views of one packet from a packet that was sent twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hop {
    /// Version 2: index of the interface.
    pub ifindex: u32,
    /// Direction: 0 in, 1 broadcast, 2 multicast, 3 others', 4 out.
    pub direction: u8,
    /// Version 1: the sender's link-layer address.
    pub sender: [u8; 8],
}

/// Where the network header begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    pub(super) start: usize,
    pub(super) ethertype: u16,
    pub(super) hop: Option<Hop>,
}

pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(super) const ETHERTYPE_IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad, and the older value for outer tags.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Tags that a frame may carry at most.
const MAX_TAGS: usize = 4;

/// The `N` bytes at `offset`. A frame that ends before them is cut short.
pub(super) fn read<const N: usize>(data: &[u8], offset: usize) -> Result<[u8; N], Other> {
    data.get(offset..).and_then(|rest| rest.first_chunk::<N>()).copied().ok_or(Other::Unparsed)
}

pub(super) fn be16(data: &[u8], offset: usize) -> Result<u16, Other> {
    read(data, offset).map(u16::from_be_bytes)
}

pub(super) fn network(link: LinkType, data: &[u8]) -> Result<Network, Other> {
    let plain = |start, ethertype| Ok(Network { start, ethertype, hop: None });
    match link {
        LinkType::ETHERNET => behind_tags(data, 12, None),
        LinkType::LINUX_SLL => behind_tags(data, 14, Some(hop_v1(data)?)),
        LinkType::LINUX_SLL2 => cooked_v2(data),
        LinkType::RAW => plain(0, by_version(data)?),
        LinkType::IPV4 => plain(0, ETHERTYPE_IPV4),
        LinkType::IPV6 => plain(0, ETHERTYPE_IPV6),
        LinkType::NULL | LinkType::LOOP => plain(4, by_family(read(data, 0)?)?),
        LinkType(other) => Err(Other::UnknownLink(other)),
    }
}

/// EtherType at `offset`, and what follows it, tags passed over.
fn behind_tags(data: &[u8], offset: usize, hop: Option<Hop>) -> Result<Network, Other> {
    let mut offset = offset;
    for _ in 0..=MAX_TAGS {
        let ethertype = be16(data, offset)?;
        if !TAGS.contains(&ethertype) {
            return Ok(Network { start: offset + 2, ethertype, hop });
        }
        offset += 4;
    }
    Err(Other::Unparsed)
}

fn by_version(data: &[u8]) -> Result<u16, Other> {
    let [first] = read(data, 0)?;
    match first >> 4 {
        4 => Ok(ETHERTYPE_IPV4),
        6 => Ok(ETHERTYPE_IPV6),
        _ => Err(Other::Foreign),
    }
}

/// Families are small numbers: of the two byte orders only the right one gives one. IPv6 has a
/// number of its own on every system.
fn by_family(family: [u8; 4]) -> Result<u16, Other> {
    let family = u32::from_be_bytes(family).min(u32::from_le_bytes(family));
    match family {
        2 => Ok(ETHERTYPE_IPV4),
        10 | 24 | 28 | 30 => Ok(ETHERTYPE_IPV6),
        _ => Err(Other::Foreign),
    }
}

/// Packet type, device type, address length, address, then the protocol.
fn hop_v1(data: &[u8]) -> Result<Hop, Other> {
    let [_, direction] = read(data, 0)?;
    Ok(Hop { ifindex: 0, direction, sender: read(data, 6)? })
}

/// Protocol, interface index, device type, packet type, address length, address.
fn cooked_v2(data: &[u8]) -> Result<Network, Other> {
    let [direction] = read(data, 10)?;
    let hop = Hop { ifindex: u32::from_be_bytes(read(data, 4)?), direction, sender: [0; 8] };
    let ethertype = be16(data, 0)?;
    if TAGS.contains(&ethertype) {
        // The tag follows the header: two bytes of it, then the inner EtherType.
        return behind_tags(data, 22, Some(hop));
    }
    Ok(Network { start: 20, ethertype, hop: Some(hop) })
}
