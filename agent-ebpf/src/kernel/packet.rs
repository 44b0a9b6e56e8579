//! From a packet to addresses, ports and TCP header fields.

use aya_ebpf::programs::TcContext;

use super::maps::PORTS;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_VLAN: u16 = 0x8100;
const ETHERTYPE_QINQ: u16 = 0x88a8;
const PROTOCOL_TCP: u8 = 6;
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

/// What the IP header says about the TCP segment behind it.
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
    pub(super) payload_offset: u32,
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

#[inline(always)]
fn be16(bytes: [u8; 2]) -> u16 {
    u16::from_be_bytes(bytes)
}

/// Offset and EtherType of the IP header.
#[inline(always)]
fn network_start(ctx: &TcContext, link_header: u32) -> Result<(u32, u16), Other> {
    if link_header == 0 {
        let [first] = read::<1>(ctx, 0)?;
        return match first >> 4 {
            4 => Ok((0, ETHERTYPE_IPV4)),
            6 => Ok((0, ETHERTYPE_IPV6)),
            _ => Err(Other::Foreign),
        };
    }
    let mut start = link_header;
    let mut ethertype = be16(read(ctx, link_header - 2)?);
    // The outermost tag normally travels in metadata; an inner one (QinQ) lies in the packet.
    if ethertype == ETHERTYPE_VLAN || ethertype == ETHERTYPE_QINQ {
        ethertype = be16(read(ctx, link_header + 2)?);
        start = link_header + 4;
    }
    Ok((start, ethertype))
}

/// `end` comes from the IP header, not from the packet: a bare ACK is padded to 60 bytes on real
/// Ethernet, and the padding is no payload.
#[inline(always)]
fn ipv4(ctx: &TcContext, start: u32) -> Result<Network, Other> {
    let header = read::<12>(ctx, start)?;
    if header[9] != PROTOCOL_TCP {
        return Err(Other::Foreign);
    }
    let header_len = u32::from(header[0] & 0x0f) * 4;
    let fragment = be16([header[6], header[7]]) & FRAGMENT_OFFSET;
    if header[0] >> 4 != 4 || header_len < 20 || fragment != 0 {
        return Err(Other::Unparsed);
    }
    let total = u32::from(be16([header[2], header[3]]));
    // BIG TCP: the length does not fit its field, which then is 0.
    let end = if total == 0 { ctx.len() } else { start + total };
    Ok(Network { l4: start + header_len, end, ipv6: false })
}

/// Hop-by-hop, routing, fragment, authentication, destination options, mobility.
#[inline(always)]
fn is_extension(header: u8) -> bool {
    matches!(header, 0 | 43 | 44 | 51 | 60 | 135)
}

#[inline(always)]
fn ipv6(ctx: &TcContext, start: u32) -> Result<Network, Other> {
    let header = read::<8>(ctx, start)?;
    match header[6] {
        PROTOCOL_TCP => {}
        extension if is_extension(extension) => {
            // What lies behind one extension header is told by its first byte: a multicast report
            // (ICMPv6 behind hop-by-hop options) appears on every interface and is no loss.
            let [next] = read::<1>(ctx, start + IPV6_HEADER)?;
            let may_be_tcp = next == PROTOCOL_TCP || is_extension(next);
            return Err(if may_be_tcp { Other::Unparsed } else { Other::Foreign });
        }
        _ => return Err(Other::Foreign),
    }
    let payload = u32::from(be16([header[4], header[5]]));
    let l4 = start + IPV6_HEADER;
    let end = if payload == 0 { ctx.len() } else { l4 + payload };
    Ok(Network { l4, end, ipv6: true })
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
fn addresses(ctx: &TcContext, start: u32, ipv6: bool) -> Result<([u8; 16], [u8; 16]), Other> {
    if ipv6 {
        return Ok((read(ctx, start + 8)?, read(ctx, start + 24)?));
    }
    Ok((mapped(read(ctx, start + 12)?), mapped(read(ctx, start + 16)?)))
}

/// Reads a packet whose link-layer header has `link_header` bytes.
#[inline(always)]
pub(super) fn parse(ctx: &TcContext, link_header: u32) -> Result<Packet, Other> {
    let (start, ethertype) = network_start(ctx, link_header)?;
    let network = match ethertype {
        ETHERTYPE_IPV4 => ipv4(ctx, start)?,
        ETHERTYPE_IPV6 => ipv6(ctx, start)?,
        _ => return Err(Other::Foreign),
    };
    let ports = read::<4>(ctx, network.l4)?;
    let source_port = be16([ports[0], ports[1]]);
    let destination_port = be16([ports[2], ports[3]]);
    if !is_endpoint_port(source_port) && !is_endpoint_port(destination_port) {
        return Err(Other::Foreign);
    }
    let (source, destination) = addresses(ctx, start, network.ipv6)?;
    let tcp = read::<14>(ctx, network.l4)?;
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
        payload_offset,
    })
}
