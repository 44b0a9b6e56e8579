//! Frames that ordinary sockets do not send.

use agent::capture::CaptureSource as _;
use agent::capture::tcx::{Method, TcxSource};

use crate::inject::Frame;
use crate::recorder::{Kept, Recorder};
use crate::support::{for_each_method, open};

const ACK: u8 = 0x10;
const PSH_ACK: u8 = 0x18;

/// A port that nobody listens on: the kernel answers with resets, which are no part of the tests.
fn unused_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A segment with payload towards `port`.
pub(crate) fn frame(port: u16, payload: &[u8]) -> Frame {
    Frame {
        port,
        source_port: 9,
        seq: 1000,
        flags: PSH_ACK,
        payload: payload.to_vec(),
        fragment_offset: 0,
        tagged: false,
    }
}

/// What came towards the endpoint.
fn towards_endpoint(source: &mut TcxSource) -> Vec<Kept> {
    let mut recorder = Recorder::default();
    recorder.drain(source);
    recorder.segments.into_iter().filter(|it| !it.from_endpoint).collect()
}

fn watch(port: u16, method: Method) -> TcxSource {
    open(std::net::SocketAddr::from(([127, 0, 0, 1], port)), method)
}

#[test]
fn padding_is_no_payload_and_a_bare_acknowledgement_is_no_event() {
    for_each_method("padding", |method| {
        let port = unused_port();
        let mut source = watch(port, method);
        let bare = Frame { flags: ACK, ..frame(port, b"") };
        bare.send();
        assert!(towards_endpoint(&mut source).is_empty());
        assert!(source.counters().unwrap().endpoint_packets >= 1);

        frame(port, b"hi").send();
        let seen = towards_endpoint(&mut source);
        assert_eq!(seen.len(), 1);
        assert_eq!((seen[0].payload_len, seen[0].payload.as_slice()), (2, b"hi".as_slice()));
        assert_eq!(seen[0].seq, 1000);
    });
}

#[test]
fn later_fragments_are_counted_and_never_read_as_ports() {
    for_each_method("fragments", |method| {
        let port = unused_port();
        let mut source = watch(port, method);
        let before = source.counters().unwrap().unparsed_packets;
        Frame { fragment_offset: 185, ..frame(port, b"looks like a segment") }.send();
        assert!(towards_endpoint(&mut source).is_empty());
        assert!(source.counters().unwrap().unparsed_packets > before);
    });
}

#[test]
fn a_tag_inside_the_packet_is_skipped() {
    for_each_method("VLAN tag", |method| {
        let port = unused_port();
        let mut source = watch(port, method);
        Frame { tagged: true, ..frame(port, b"tagged") }.send();
        let seen = towards_endpoint(&mut source);
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].payload, b"tagged");
    });
}
