//! From a packet to addresses, ports and TCP header fields.

use agent_ebpf::endpoint::Address;

use super::bytes::{Head, IpPacket};
use super::ports::is_endpoint_port;

pub(super) const PROTOCOL_TCP: u8 = 6;
const IPV4_HEADER: u32 = 20;
const IPV6_HEADER: u32 = 40;
const FRAGMENT_OFFSET: u32 = 0x1fff;

/// TCP flag bits (RFC 9293, section 3.1).
pub(super) const FIN: u8 = 0x01;
/// See [`FIN`].
pub(super) const SYN: u8 = 0x02;
/// See [`FIN`].
pub(super) const RST: u8 = 0x04;

/// Why a packet is no segment to look at.
pub(super) enum Other {
    /// Not TCP, or of no port that is an endpoint's.
    Foreign,
    /// TCP, but its ports or lengths can't be read: fragments, extension headers, broken headers.
    Unparsed,
}

/// What the IP header says about the TCP segment behind it; offsets from the IP header's start.
struct Network {
    l4: u32,
    end: u32,
}

/// A TCP segment of a port that some endpoint has.
pub(super) struct Packet {
    pub(super) source: Address,
    pub(super) destination: Address,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    /// Whether some endpoint has the source's port, else the destination's is one.
    pub(super) from_endpoint_port: bool,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    pub(super) payload_len: u32,
    /// From the start of the program's view of the packet.
    pub(super) payload_offset: u32,
}

/// `end` comes from the IP header, not from the packet: a bare ACK is padded to 60 bytes on real
/// Ethernet, and the padding is no payload.
#[inline(always)]
fn ipv4(ip: &IpPacket<impl Head>) -> Result<Network, Other> {
    let protocol = u32::from_be(ip.word::<2>()) >> 16 & 0xff;
    if protocol != u32::from(PROTOCOL_TCP) {
        return Err(Other::Foreign);
    }
    let first = u32::from_be(ip.word::<0>());
    let fragment = u32::from_be(ip.word::<1>()) & FRAGMENT_OFFSET;
    let l4 = (first >> 24 & 0x0f) * 4;
    if first >> 28 != 4 || l4 < IPV4_HEADER || fragment != 0 {
        return Err(Other::Unparsed);
    }
    let total = first & 0xffff;
    // BIG TCP: the length does not fit its field, which then is 0.
    let end = if total == 0 { ip.len() } else { total };
    Ok(Network { l4, end })
}

/// Hop-by-hop, routing, fragment, authentication, destination options, mobility.
#[inline(always)]
fn is_extension(header: u8) -> bool {
    matches!(header, 0 | 43 | 44 | 51 | 60 | 135)
}

#[inline(always)]
fn ipv6(ip: &IpPacket<impl Head>) -> Result<Network, Other> {
    let word = u32::from_be(ip.word::<1>());
    match (word >> 8) as u8 {
        PROTOCOL_TCP => {}
        extension if is_extension(extension) => {
            // What lies behind one extension header is told by its first byte: a multicast report
            // (ICMPv6 behind hop-by-hop options) appears on every interface and is no loss.
            let [words] = ip.far::<1>(IPV6_HEADER)?;
            let [next, ..] = words.to_ne_bytes();
            let may_be_tcp = next == PROTOCOL_TCP || is_extension(next);
            return Err(if may_be_tcp { Other::Unparsed } else { Other::Foreign });
        }
        _ => return Err(Other::Foreign),
    }
    let payload = word >> 16;
    let end = if payload == 0 { ip.len() } else { IPV6_HEADER + payload };
    Ok(Network { l4: IPV6_HEADER, end })
}

/// Two words as they follow each other in memory; the target is little-endian.
#[inline(always)]
fn double(first: u32, second: u32) -> u64 {
    u64::from(first) | u64::from(second) << 32
}

#[inline(always)]
fn mapped(address: u32) -> Address {
    [0, double(u32::to_be(0xffff), address)]
}

#[inline(always)]
fn addresses(ip: &IpPacket<impl Head>) -> (Address, Address) {
    if ip.is_ipv6() {
        return (
            [double(ip.word::<2>(), ip.word::<3>()), double(ip.word::<4>(), ip.word::<5>())],
            [double(ip.word::<6>(), ip.word::<7>()), double(ip.word::<8>(), ip.word::<9>())],
        );
    }
    (mapped(ip.word::<3>()), mapped(ip.word::<4>()))
}

/// Ports, sequence number, acknowledgement number, lengths and flags. Nearly every packet has the
/// IPv4 header without options, and its TCP header at a constant offset.
#[inline(always)]
fn tcp_header(ip: &IpPacket<impl Head>, l4: u32) -> Result<[u32; 4], Other> {
    if l4 == IPV4_HEADER {
        return Ok([ip.word::<5>(), ip.word::<6>(), ip.word::<7>(), ip.word::<8>()]);
    }
    ip.far::<4>(l4)
}

/// Reads a packet from its IP header on.
#[inline(always)]
pub(super) fn parse(ip: &IpPacket<impl Head>) -> Result<Packet, Other> {
    let network = if ip.is_ipv6() { ipv6(ip)? } else { ipv4(ip)? };
    let [ports, seq, ack, rest] = tcp_header(ip, network.l4)?;
    let ports = u32::from_be(ports);
    let (source_port, destination_port) = ((ports >> 16) as u16, ports as u16);
    let from_endpoint_port = is_endpoint_port(source_port);
    if !from_endpoint_port && !is_endpoint_port(destination_port) {
        return Err(Other::Foreign);
    }
    let rest = u32::from_be(rest);
    let header_words = rest >> 28;
    let payload_offset = network.l4 + header_words * 4;
    if header_words < 5 || network.end < payload_offset {
        return Err(Other::Unparsed);
    }
    let (source, destination) = addresses(ip);
    Ok(Packet {
        source,
        destination,
        source_port,
        destination_port,
        from_endpoint_port,
        seq: u32::from_be(seq),
        ack: u32::from_be(ack),
        flags: (rest >> 16) as u8,
        payload_len: network.end - payload_offset,
        payload_offset: ip.start() + payload_offset,
    })
}
