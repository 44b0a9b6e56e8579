//! Records of the ring buffer, in any order and with any content, into flows and out as observations.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use agent::capture::CaptureEvent;
use agent::capture::pcap::write::TcpSegment;
use agent::capture::tcx::parse_record;
use agent::flow::{FlowEvent, FlowLimits, FlowTable};
use protocol::Nanos;

use super::capture::{SERVER, conversation};

/// Nanoseconds beyond every patience of the flows.
const LONG: u64 = 3_600_000_000_000;

/// The input is a row of records, each behind its length in two bytes.
pub(super) fn run(mut input: &[u8]) {
    let mut flows = FlowTable::new([SERVER], FlowLimits::default());
    let mut latest = 0;
    let mut requests: i64 = 0;
    while let Some((length, rest)) = input.split_first_chunk::<2>() {
        let (record, left) =
            rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
        input = left;
        match parse_record(record) {
            Some(CaptureEvent::Segment(segment)) => {
                latest = latest.max(segment.stamp.get());
                flows.take(&segment);
            }
            Some(CaptureEvent::Retransmit(report)) => flows.retransmit(&report),
            Some(CaptureEvent::Socket(_)) | None => {}
        }
        flows.settle(Nanos::new(latest));
        requests += balance(&mut flows);
        assert!(requests >= 0, "more requests ended than began");
    }
    flows.settle(Nanos::new(latest.saturating_add(LONG)));
    flows.flush();
    balance(&mut flows);
}

/// Requests begun minus requests ended.
fn balance(flows: &mut FlowTable) -> i64 {
    flows.take_events().iter().fold(0, |sum, event| match event {
        FlowEvent::RequestStarted { .. } => sum + 1,
        FlowEvent::RequestEnded { .. } => sum - 1,
        _ => sum,
    })
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let rows: Vec<Vec<u8>> =
        conversation().iter().map(|(stamp, segment)| record(*stamp, segment)).collect();
    let mut late = rows.clone();
    late.swap(3, 4);
    let mut lost = rows.clone();
    lost.remove(4);
    let twice: Vec<_> = rows.iter().flat_map(|row| [row.clone(), row.clone()]).collect();
    let mut end = rows.clone();
    end.truncate(5);
    [rows, late, lost, twice, end].iter().map(|rows| framed(rows)).collect()
}

fn framed(rows: &[Vec<u8>]) -> Vec<u8> {
    let length = |row: &Vec<u8>| u16::try_from(row.len()).unwrap_or(0).to_le_bytes();
    rows.iter().flat_map(|row| [&length(row)[..], row].concat()).collect()
}

/// A segment as the kernel program writes it (`agent_ebpf::record::SegmentHeader`).
fn record(stamp: u64, segment: &TcpSegment) -> Vec<u8> {
    let length = u32::try_from(segment.payload.len()).unwrap_or(0);
    let mut bytes = vec![1, segment.flags, u8::from(segment.source == SERVER), 0];
    bytes.extend(1_u32.to_ne_bytes());
    bytes.extend(stamp.to_ne_bytes());
    bytes.extend(0_u64.to_ne_bytes());
    bytes.extend(address(segment.source));
    bytes.extend(address(segment.destination));
    bytes.extend(segment.source.port().to_ne_bytes());
    bytes.extend(segment.destination.port().to_ne_bytes());
    for number in [0, segment.seq, segment.ack, length, 0, length, 0] {
        bytes.extend(number.to_ne_bytes());
    }
    bytes.extend(&segment.payload);
    bytes
}

fn address(address: SocketAddr) -> [u8; 16] {
    match address.ip() {
        IpAddr::V4(v4) => v4,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
    .to_ipv6_mapped()
    .octets()
}
