//! Files from end to end.

use protocol::Nanos;

use super::*;
use crate::capture::pcap::write::{StampUnit, TcpSegment, Writer, link_frame};
use crate::capture::pcap::{LinkType, Order};
use crate::flow::FinishedExchange;
use crate::observation::Outcome;
use crate::testing::*;

fn frame(packet: &Packet) -> Vec<u8> {
    let (source, destination) =
        if packet.from_endpoint { (endpoint(), packet.peer) } else { (packet.peer, endpoint()) };
    let (seq, ack, flags) = (packet.seq, packet.ack, packet.flags);
    let payload = packet.payload.clone();
    let segment = TcpSegment { source, destination, seq, ack, flags, payload };
    link_frame(LinkType::ETHERNET, &segment.ip())
}

fn write(mut writer: Writer, packets: &[Packet]) -> Vec<u8> {
    packets.iter().for_each(|packet| writer.frame(0, packet.stamp, &frame(packet)));
    writer.into_bytes()
}

fn file(packets: &[Packet], snap_len: u32) -> Vec<u8> {
    write(Writer::pcap(Order::Big, StampUnit::Nano, LinkType::ETHERNET, snap_len), packets)
}

fn observe(bytes: &[u8]) -> (ReadReport, Vec<FinishedExchange>) {
    let watched = [Endpoint { address: endpoint(), role: Role::Backend }];
    let source = FileSource::open(bytes, [endpoint()]).unwrap();
    let mut finished = Vec::new();
    let mut keep = |it: &Observation| finished.push(it.exchange.clone());
    let report = read(source, &watched, &mut keep, &mut |_| {});
    (report, finished)
}

fn whole() -> Talk {
    let mut talk = Talk::open();
    talk.request(&post(1, "hello"));
    for part in stream(5).chunks(40) {
        talk.response(part);
    }
    talk.client_fin().endpoint_fin();
    talk
}

fn reasons_of(report: &ReadReport) -> Vec<&'static str> {
    report.causes.iter().map(|cause| cause.reason).collect()
}

#[test]
fn a_whole_stream_is_complete_and_keeps_its_stamps() {
    let packets = whole().packets;
    let (report, finished) = observe(&file(&packets, 0));
    assert!(report.complete, "{:?}", report.causes);
    let row = &report.endpoints[0];
    assert_eq!((row.connections, row.requests), (1, 1));
    assert_eq!(row.outcomes.get(&Outcome::Ok), Some(&1));
    assert_eq!(row.framing.valid, 1);
    assert_eq!(finished[0].request_end, Some(Nanos::new(packets[2].stamp)));
    assert_eq!(finished[0].response.first_byte, Some(Nanos::new(packets[3].stamp)));
}

#[test]
fn order_and_repetition_of_segments_change_no_verdict() {
    let mut packets = whole().packets;
    packets.swap(5, 6);
    packets.insert(8, packets[4].clone());
    let (report, finished) = observe(&file(&packets, 0));
    assert!(report.complete, "{:?}", report.causes);
    assert_eq!(Outcome::of(&finished[0]), Outcome::Ok);
    assert_eq!(report.endpoints[0].retransmits, 1);
}

#[test]
fn cut_packets_give_no_verdict_and_never_a_false_one() {
    let (report, finished) = observe(&file(&whole().packets, 80));
    assert!(reasons_of(&report).contains(&"snap_length"), "{:?}", report.causes);
    assert_eq!(Outcome::of(&finished[0]), Outcome::Unknown);
    assert_eq!(report.endpoints[0].framing.invalid, 0);
}

#[test]
fn a_torn_file_gives_what_is_complete_and_says_so() {
    let bytes = file(&whole().packets, 0);
    let (report, finished) = observe(&bytes[..bytes.len() - 1]);
    assert_eq!(reasons_of(&report)[0], "torn_record");
    assert_eq!(finished.len(), 1);
}

#[test]
fn two_views_of_a_packet_count_once() {
    let packets = whole().packets;
    let mut writer = Writer::pcapng(Order::Little, StampUnit::Nano, 0);
    writer.interface(LinkType::ETHERNET, &[(2, b"veth0")]);
    writer.interface(LinkType::ETHERNET, &[(2, b"br0")]);
    for packet in &packets {
        writer.frame(0, packet.stamp, &frame(packet));
        writer.frame(1, packet.stamp + 10, &frame(packet));
    }
    let (report, finished) = observe(&writer.into_bytes());
    assert!(report.complete, "{:?}", report.causes);
    assert_eq!(finished.len(), 1);
    assert_eq!(finished[0].response.bytes, stream(5).len() as u64);
    assert_eq!(report.endpoints[0].retransmits, 0);
}

#[test]
fn every_scripted_case_gets_its_right_answer_from_a_file() {
    use protocol::cases::{End, Expected};
    for case in protocol::cases::cases() {
        let mut talk = Talk::open_at(1000, 5000, 1_000_000_000);
        talk.request(&post(1, "hello"));
        let sent = talk.stamp;
        let at = |ms: u64| sent + ms * 1_000_000;
        for step in &case.steps {
            talk.response(&step.bytes);
            talk.last().stamp = at(step.at_ms);
        }
        match case.end {
            End::KeepAlive => {}
            End::Close(ms) => talk.endpoint_fin().last().stamp = at(ms),
            End::Reset(ms) => talk.reset(true).last().stamp = at(ms),
        }
        let (report, finished) = observe(&file(&talk.packets, 0));
        let Some(exchange) = finished.first() else {
            assert_eq!((case.end, report.open_requests), (End::KeepAlive, 1), "{}", case.name);
            continue;
        };
        let response =
            protocol::TimelineRecord { framing: exchange.framing(), ..exchange.response.clone() };
        let observed = Expected::observed(&response, Nanos::new(sent));
        let expected = Expected { retry_after: None, ..case.expect.clone() };
        assert_eq!(observed, expected, "{}", case.name);
    }
}

#[test]
fn servers_are_found_by_their_answers() {
    let found = find_listeners(file(&whole().packets, 0).as_slice(), &mut |_| {}).unwrap();
    let server = Listener { address: endpoint(), accepted: 1, http_responses: 1 };
    assert_eq!((found.listeners.as_slice(), found.cut), (&[server][..], false));
}
