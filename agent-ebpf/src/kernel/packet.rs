//! From a packet to addresses, ports and TCP header fields.

use super::bytes::IpBytes;
use super::maps::PORTS;

pub(super) const PROTOCOL_TCP: u8 = 6;
const IPV4_HEADER: u32 = 20;
const IPV6_HEADER: u32 = 40;
const FRAGMENT_OFFSET: u16 = 0x1fff;

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
    ipv6: bool,
}

/// A TCP segment of a port that some endpoint has.
pub(super) struct Packet {
    pub(super) source: [u8; 16],
    pub(super) destination: [u8; 16],
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    pub(super) payload_len: u32,
    /// From the start of the program's view of the packet.
    pub(super) payload_offset: u32,
}

#[inline(always)]
fn be16(bytes: [u8; 2]) -> u16 {
    u16::from_be_bytes(bytes)
}

/// `end` comes from the IP header, not from the packet: a bare ACK is padded to 60 bytes on real
/// Ethernet, and the padding is no payload.
#[inline(always)]
fn ipv4(ip: &impl IpBytes) -> Result<Network, Other> {
    let header = ip.near::<0, 12>()?;
    if header[9] != PROTOCOL_TCP {
        return Err(Other::Foreign);
    }
    let header_len = u32::from(header[0] & 0x0f) * 4;
    let fragment = be16([header[6], header[7]]) & FRAGMENT_OFFSET;
    if header[0] >> 4 != 4 || header_len < IPV4_HEADER || fragment != 0 {
        return Err(Other::Unparsed);
    }
    let total = u32::from(be16([header[2], header[3]]));
    // BIG TCP: the length does not fit its field, which then is 0.
    let end = if total == 0 { ip.len() } else { total };
    Ok(Network { l4: header_len, end, ipv6: false })
}

/// Hop-by-hop, routing, fragment, authentication, destination options, mobility.
#[inline(always)]
fn is_extension(header: u8) -> bool {
    matches!(header, 0 | 43 | 44 | 51 | 60 | 135)
}

#[inline(always)]
fn ipv6(ip: &impl IpBytes) -> Result<Network, Other> {
    let header = ip.near::<0, 8>()?;
    match header[6] {
        PROTOCOL_TCP => {}
        extension if is_extension(extension) => {
            // What lies behind one extension header is told by its first byte: a multicast report
            // (ICMPv6 behind hop-by-hop options) appears on every interface and is no loss.
            let [next] = ip.far::<1>(IPV6_HEADER)?;
            let may_be_tcp = next == PROTOCOL_TCP || is_extension(next);
            return Err(if may_be_tcp { Other::Unparsed } else { Other::Foreign });
        }
        _ => return Err(Other::Foreign),
    }
    let payload = u32::from(be16([header[4], header[5]]));
    let end = if payload == 0 { ip.len() } else { IPV6_HEADER + payload };
    Ok(Network { l4: IPV6_HEADER, end, ipv6: true })
}

#[inline(always)]
fn is_endpoint_port(port: u16) -> bool {
    PORTS.get(u32::from(port)).is_some_and(|marked| *marked != 0)
}

#[inline(always)]
fn mapped(address: [u8; 4]) -> [u8; 16] {
    let [a, b, c, d] = address;
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
}

#[inline(always)]
fn addresses(ip: &impl IpBytes, ipv6: bool) -> Result<([u8; 16], [u8; 16]), Other> {
    if ipv6 {
        return Ok((ip.near::<8, 16>()?, ip.near::<24, 16>()?));
    }
    Ok((mapped(ip.near::<12, 4>()?), mapped(ip.near::<16, 4>()?)))
}

/// The first `N` bytes of the TCP header. Nearly every packet has the IPv4 header without options,
/// and its TCP header at a constant offset.
#[inline(always)]
fn tcp_header<const N: usize>(ip: &impl IpBytes, l4: u32) -> Result<[u8; N], Other> {
    if l4 == IPV4_HEADER { ip.near::<20, N>() } else { ip.far::<N>(l4) }
}

/// Reads a packet from its IP header on.
#[inline(always)]
pub(super) fn parse(ip: &impl IpBytes) -> Result<Packet, Other> {
    let network = if ip.is_ipv6() { ipv6(ip)? } else { ipv4(ip)? };
    let ports = tcp_header::<4>(ip, network.l4)?;
    let source_port = be16([ports[0], ports[1]]);
    let destination_port = be16([ports[2], ports[3]]);
    if !is_endpoint_port(source_port) && !is_endpoint_port(destination_port) {
        return Err(Other::Foreign);
    }
    let (source, destination) = addresses(ip, network.ipv6)?;
    let tcp = tcp_header::<14>(ip, network.l4)?;
    let payload_offset = network.l4 + u32::from(tcp[12] >> 4) * 4;
    if tcp[12] >> 4 < 5 || network.end < payload_offset {
        return Err(Other::Unparsed);
    }
    Ok(Packet {
        source,
        destination,
        source_port,
        destination_port,
        seq: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
        ack: u32::from_be_bytes([tcp[8], tcp[9], tcp[10], tcp[11]]),
        flags: tcp[13],
        payload_len: network.end - payload_offset,
        payload_offset: ip.start() + payload_offset,
    })
}
