//! From a frame to a TCP segment, by the rules of the live source: lengths come from the IP header,
//! and whatever can't be read as ports is counted, never guessed at.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::link::{self, ETHERTYPE_IPV4, ETHERTYPE_IPV6, Hop, be16, read};
use super::reader::Frame;
use crate::capture::TcpFlags;

const TCP: u8 = 6;
const FRAGMENT_OFFSET: u16 = 0x1fff;
const IPV6_HEADER: usize = 40;

/// Why a frame is no segment to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// Not TCP over IP.
    Foreign,
    /// TCP, but its ports or lengths can't be read: later fragments, IPv6 extension headers, broken
    /// headers, or headers that were not captured.
    Unparsed,
    /// A link type that is not read.
    UnknownLink(u16),
}

/// A TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Sender (IPv4-mapped IPv6 addresses become plain IPv4).
    pub source: SocketAddr,
    /// Receiver.
    pub destination: SocketAddr,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags.
    pub flags: TcpFlags,
    /// Payload bytes on the wire.
    pub payload_len: u32,
    /// Payload bytes captured: all of them, or the first ones.
    pub payload: &'a [u8],
    /// Of cooked captures.
    pub hop: Option<Hop>,
}

/// What the IP header says about the TCP segment behind it.
struct Network {
    source: IpAddr,
    destination: IpAddr,
    l4: usize,
    /// End of the IP packet, counted from the frame's start.
    end: usize,
}

/// Reads a frame.
///
/// # Errors
/// Why it is no segment.
pub fn parse<'a>(frame: &Frame<'a>) -> Result<Packet<'a>, Other> {
    let link = link::network(frame.link, frame.data)?;
    let wire_len = usize::try_from(frame.original_len).unwrap_or(usize::MAX);
    let wire_len = wire_len.max(frame.data.len());
    let network = match link.ethertype {
        ETHERTYPE_IPV4 => ipv4(frame.data, link.start, wire_len)?,
        ETHERTYPE_IPV6 => ipv6(frame.data, link.start, wire_len)?,
        _ => return Err(Other::Foreign),
    };
    tcp(frame.data, &network, link.hop)
}

/// The total length, not the frame's: a bare acknowledgement is padded to 60 bytes on Ethernet. A
/// total length of 0 is that of a packet too large for the field (BIG TCP, segmentation offload).
fn ipv4(data: &[u8], start: usize, wire_len: usize) -> Result<Network, Other> {
    let header: [u8; 20] = read(data, start)?;
    if header[9] != TCP {
        return Err(Other::Foreign);
    }
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let fragment = be16(&header, 6)? & FRAGMENT_OFFSET;
    if header[0] >> 4 != 4 || header_len < 20 || fragment != 0 {
        return Err(Other::Unparsed);
    }
    let total = usize::from(be16(&header, 2)?);
    Ok(Network {
        source: Ipv4Addr::from(read::<4>(&header, 12)?).into(),
        destination: Ipv4Addr::from(read::<4>(&header, 16)?).into(),
        l4: start + header_len,
        end: if total == 0 { wire_len } else { start + total },
    })
}

/// Hop-by-hop, routing, fragment, authentication, destination options, mobility.
fn is_extension(header: u8) -> bool {
    matches!(header, 0 | 43 | 44 | 51 | 60 | 135)
}

fn ipv6(data: &[u8], start: usize, wire_len: usize) -> Result<Network, Other> {
    let header: [u8; IPV6_HEADER] = read(data, start)?;
    let l4 = start + IPV6_HEADER;
    match header[6] {
        TCP => {}
        extension if is_extension(extension) => {
            // A multicast report (ICMPv6 behind hop-by-hop options) is no loss.
            let [next] = read(data, l4)?;
            let may_be_tcp = next == TCP || is_extension(next);
            return Err(if may_be_tcp { Other::Unparsed } else { Other::Foreign });
        }
        _ => return Err(Other::Foreign),
    }
    if header[0] >> 4 != 6 {
        return Err(Other::Unparsed);
    }
    let payload = usize::from(be16(&header, 4)?);
    Ok(Network {
        source: IpAddr::V6(Ipv6Addr::from(read::<16>(&header, 8)?)).to_canonical(),
        destination: IpAddr::V6(Ipv6Addr::from(read::<16>(&header, 24)?)).to_canonical(),
        l4,
        end: if payload == 0 { wire_len } else { l4 + payload },
    })
}

fn tcp<'a>(data: &'a [u8], network: &Network, hop: Option<Hop>) -> Result<Packet<'a>, Other> {
    let header: [u8; 14] = read(data, network.l4)?;
    let header_len = usize::from(header[12] >> 4) * 4;
    let start = network.l4 + header_len;
    if header_len < 20 || network.end < start {
        return Err(Other::Unparsed);
    }
    let captured = data.get(start..network.end.min(data.len())).unwrap_or_default();
    Ok(Packet {
        source: SocketAddr::new(network.source, be16(&header, 0)?),
        destination: SocketAddr::new(network.destination, be16(&header, 2)?),
        seq: u32::from_be_bytes(read(&header, 4)?),
        ack: u32::from_be_bytes(read(&header, 8)?),
        flags: TcpFlags(header[13]),
        payload_len: u32::try_from(network.end - start).map_err(|_| Other::Unparsed)?,
        payload: captured,
        hop,
    })
}
