//! From the bytes of a ring record to a [`CaptureEvent`], without trusting them.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use agent_ebpf::record::{
    KIND_RETRANSMIT, KIND_SEGMENT, KIND_SOCKET, SEGMENT_HEADER_LEN, SOCKET_RECORD_LEN,
};
use protocol::Nanos;

use crate::capture::{CaptureEvent, Retransmit, Segment, SocketTransition, TcpFlags};

/// `N` bytes at `offset`; the layout is asserted in `agent_ebpf::record`.
fn bytes<const N: usize>(record: &[u8], offset: usize) -> Option<[u8; N]> {
    record.get(offset..)?.first_chunk::<N>().copied()
}

fn number16(record: &[u8], offset: usize) -> Option<u16> {
    bytes(record, offset).map(u16::from_ne_bytes)
}

fn number32(record: &[u8], offset: usize) -> Option<u32> {
    bytes(record, offset).map(u32::from_ne_bytes)
}

fn address(record: &[u8], address_at: usize, port_at: usize) -> Option<SocketAddr> {
    let address = Ipv6Addr::from(bytes::<16>(record, address_at)?);
    Some(SocketAddr::new(IpAddr::V6(address).to_canonical(), number16(record, port_at)?))
}

fn stamp(record: &[u8]) -> Option<Nanos> {
    bytes(record, 8).map(u64::from_ne_bytes).map(Nanos::new)
}

/// Parses one record; `None` when it is of no known kind or shorter than it says.
pub fn parse(record: &[u8]) -> Option<CaptureEvent<'_>> {
    match *record.first()? {
        KIND_SEGMENT => segment(record).map(CaptureEvent::Segment),
        KIND_SOCKET => socket(record).map(CaptureEvent::Socket),
        KIND_RETRANSMIT => socket(record).map(|it| CaptureEvent::Retransmit(retransmit(&it))),
        _ => None,
    }
}

fn segment(record: &[u8]) -> Option<Segment<'_>> {
    let captured = usize::try_from(number32(record, 80)?).ok()?;
    Some(Segment {
        stamp: stamp(record)?,
        ifindex: number32(record, 4)?,
        source: address(record, 24, 56)?,
        destination: address(record, 40, 58)?,
        from_endpoint: *record.get(2)? != 0,
        seq: number32(record, 64)?,
        ack: number32(record, 68)?,
        flags: TcpFlags(*record.get(1)?),
        payload_len: number32(record, 72)?,
        piece_offset: number32(record, 76)?,
        payload: record.get(SEGMENT_HEADER_LEN..)?.get(..captured)?,
        cpu: number32(record, 60)?,
    })
}

fn socket(record: &[u8]) -> Option<SocketTransition> {
    if record.len() < SOCKET_RECORD_LEN {
        return None;
    }
    Some(SocketTransition {
        stamp: stamp(record)?,
        local: address(record, 24, 56)?,
        remote: address(record, 40, 58)?,
        old_state: *record.get(1)?,
        new_state: *record.get(2)?,
        at_endpoint: *record.get(3)? != 0,
    })
}

/// The record has the form of a transition; a socket sends from its local address.
fn retransmit(socket: &SocketTransition) -> Retransmit {
    Retransmit {
        stamp: socket.stamp,
        source: socket.local,
        destination: socket.remote,
        from_endpoint: socket.at_endpoint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment_bytes(payload: &[u8]) -> Vec<u8> {
        let mut record = vec![KIND_SEGMENT, 0x18, 1, 0];
        record.extend(7_u32.to_ne_bytes());
        record.extend(123_456_789_u64.to_ne_bytes());
        record.extend(42_u64.to_ne_bytes());
        record.extend("::ffff:10.1.2.3".parse::<Ipv6Addr>().unwrap().octets());
        record.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        record.extend(8000_u16.to_ne_bytes());
        record.extend(40_000_u16.to_ne_bytes());
        record.extend(3_u32.to_ne_bytes());
        for field in [0xffff_fff0_u32, 77, 5000, 4096] {
            record.extend(field.to_ne_bytes());
        }
        record.extend(u32::try_from(payload.len()).unwrap().to_ne_bytes());
        record.extend(0_u32.to_ne_bytes());
        record.extend(payload);
        record
    }

    fn socket_bytes() -> Vec<u8> {
        let mut record = vec![KIND_SOCKET, 3, 1, 1];
        record.extend(0_u32.to_ne_bytes());
        record.extend(99_u64.to_ne_bytes());
        record.extend(0_u64.to_ne_bytes());
        record.extend("::1".parse::<Ipv6Addr>().unwrap().octets());
        record.extend("::ffff:10.0.0.9".parse::<Ipv6Addr>().unwrap().octets());
        record.extend(8000_u16.to_ne_bytes());
        record.extend(0_u16.to_ne_bytes());
        record.extend(0_u32.to_ne_bytes());
        record
    }

    #[test]
    fn every_field_of_a_segment_is_read_from_its_place() {
        let record = segment_bytes(b"data: x");
        let expected = Segment {
            stamp: Nanos::new(123_456_789),
            ifindex: 7,
            source: "10.1.2.3:8000".parse().unwrap(),
            destination: "[2001:db8::1]:40000".parse().unwrap(),
            from_endpoint: true,
            seq: 0xffff_fff0,
            ack: 77,
            flags: TcpFlags(0x18),
            payload_len: 5000,
            piece_offset: 4096,
            payload: b"data: x",
            cpu: 3,
        };
        assert_eq!(parse(&record), Some(CaptureEvent::Segment(expected)));
    }

    #[test]
    fn bytes_beyond_the_captured_length_are_not_payload() {
        let mut record = segment_bytes(b"");
        record.extend([0; 4]);
        let Some(CaptureEvent::Segment(segment)) = parse(&record) else { panic!("no segment") };
        assert_eq!(segment.payload, b"");
    }

    #[test]
    fn every_field_of_a_transition_is_read_from_its_place() {
        let expected = SocketTransition {
            stamp: Nanos::new(99),
            local: "[::1]:8000".parse().unwrap(),
            remote: "10.0.0.9:0".parse().unwrap(),
            old_state: 3,
            new_state: 1,
            at_endpoint: true,
        };
        assert_eq!(parse(&socket_bytes()), Some(CaptureEvent::Socket(expected)));
    }

    #[test]
    fn a_retransmission_goes_from_the_local_to_the_remote_address() {
        let mut record = socket_bytes();
        record[0] = KIND_RETRANSMIT;
        let expected = Retransmit {
            stamp: Nanos::new(99),
            source: "[::1]:8000".parse().unwrap(),
            destination: "10.0.0.9:0".parse().unwrap(),
            from_endpoint: true,
        };
        assert_eq!(parse(&record), Some(CaptureEvent::Retransmit(expected)));
    }

    #[test]
    fn a_truncated_or_unknown_record_is_refused_at_every_length() {
        for whole in [segment_bytes(b"abc"), socket_bytes()] {
            for len in 0..whole.len() {
                assert_eq!(parse(&whole[..len]), None, "length {len}");
            }
        }
        assert_eq!(parse(&[9; 128]), None);
    }
}
