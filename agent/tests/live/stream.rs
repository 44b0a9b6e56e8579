//! A connection as the kernel programs see it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use agent::capture::CaptureSource as _;
use agent::capture::tcx::{Method, TcxConfig, TcxSource};

use crate::recorder::Recorder;
use crate::support::{for_each_method, open};

const CLOSED: u8 = 7;
const WHOLE: usize = 200_000;
const SMALL_WRITES: usize = 400;

fn pattern(len: usize, step: usize) -> Vec<u8> {
    (0..len).map(|index| u8::try_from(index * step % 251).unwrap()).collect()
}

/// One big write, then many small ones.
fn write_response(stream: &mut TcpStream, response: &[u8]) {
    stream.set_nodelay(true).unwrap();
    let (big, small) = response.split_at(WHOLE);
    stream.write_all(big).unwrap();
    for chunk in small.chunks(50) {
        stream.write_all(chunk).unwrap();
    }
}

/// Serves one connection: reads `request` whole, then answers.
fn serve(listener: TcpListener, request: usize, response: Vec<u8>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = vec![0; request];
        stream.read_exact(&mut received).unwrap();
        write_response(&mut stream, &response);
        // Until the client closes.
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    })
}

fn gauge(source: &TcxSource) -> i64 {
    source.connections().unwrap()[0].change
}

fn assert_reconciled(source: &mut TcxSource) {
    let counters = source.counters().unwrap();
    for class in [counters.segments, counters.sockets] {
        assert_eq!(class.failed, 0);
        assert_eq!(class.attempted, class.consumed, "{counters:?}");
    }
    assert!(counters.endpoint_packets > 0 && counters.packets >= counters.endpoint_packets);
    assert_eq!(source.missed_transitions(), Some(0));
    assert_eq!(source.missed_retransmits(), Some(0));
}

fn one_connection(listen: SocketAddr, method: Method) {
    let listener = TcpListener::bind(listen).unwrap();
    let endpoint = listener.local_addr().unwrap();
    let request = pattern(WHOLE, 7);
    let response = pattern(WHOLE + SMALL_WRITES * 50, 11);
    let mut source = open(endpoint, method);
    let mut recorder = Recorder::default();

    let server = serve(listener, request.len(), response.clone());
    let mut client = TcpStream::connect(endpoint).unwrap();
    let peer = client.local_addr().unwrap();
    client.write_all(&request).unwrap();
    let mut received = vec![0; response.len()];
    client.read_exact(&mut received).unwrap();
    assert_eq!(gauge(&source), 1);
    drop(client);
    server.join().unwrap();
    recorder.poll_until(&mut source, |it| {
        it.transitions.iter().any(|it| it.at_endpoint && it.new_state == CLOSED)
    });
    recorder.drain(&mut source);

    assert_eq!(gauge(&source), 0);
    let sent = recorder.stream(false);
    assert_eq!(sent.wire_len, u32::try_from(request.len()).unwrap());
    assert_eq!(sent.copied, request[..64 * 1024]);
    let answered = recorder.stream(true);
    assert_eq!(answered.wire_len, u32::try_from(response.len()).unwrap());
    assert!(answered.copied == response, "{} bytes copied", answered.copied.len());
    assert!(recorder.segments.iter().all(|it| [it.source, it.destination].contains(&peer)));
    assert!(recorder.segments.iter().any(|it| it.payload_len > 4096 && it.piece_offset > 0));
    assert_reconciled(&mut source);
}

#[test]
fn both_directions_of_an_ipv4_connection_are_seen_byte_for_byte() {
    for_each_method("ipv4 connection", |method| {
        one_connection("127.0.0.1:0".parse().unwrap(), method);
    });
}

#[test]
fn both_directions_of_an_ipv6_connection_are_seen_byte_for_byte() {
    for_each_method("ipv6 connection", |method| one_connection("[::1]:0".parse().unwrap(), method));
}

/// Bytes of each request on the connection.
const REQUEST: usize = 5_000;

/// Sends two requests on one connection, each answered, with `between` before the second; answers how
/// many bytes of each were copied.
fn copied_of_two_requests(
    method: Method,
    request_budget: u32,
    between: impl FnOnce(&mut TcxSource),
) -> [usize; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = listener.local_addr().unwrap();
    let config = TcxConfig { request_budget, ..crate::support::config(endpoint, method) };
    let mut source = TcxSource::open(&config).unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for _ in 0..2 {
            stream.read_exact(&mut [0; REQUEST]).unwrap();
            stream.write_all(b"ok").unwrap();
        }
    });
    let mut client = TcpStream::connect(endpoint).unwrap();
    let mut request = || {
        client.write_all(&[b'x'; REQUEST]).unwrap();
        client.read_exact(&mut [0; 2]).unwrap();
    };
    request();
    between(&mut source);
    request();
    server.join().unwrap();
    let mut recorder = Recorder::default();
    recorder.drain(&mut source);
    let requests: Vec<_> =
        recorder.segments.iter().filter(|it| !it.from_endpoint && it.payload_len > 0).collect();
    let first = requests[0].seq;
    let mut seen = [(0, 0); 2];
    for segment in requests {
        let (wire, copied) = &mut seen[segment.seq.wrapping_sub(first) as usize / REQUEST];
        *wire += segment.payload_len as usize;
        *copied += segment.payload.len();
    }
    seen.map(|(wire, copied)| {
        assert_eq!(wire, REQUEST);
        copied
    })
}

#[test]
fn a_request_after_a_response_has_a_full_budget_again() {
    for_each_method("request budget", |method| {
        assert_eq!(copied_of_two_requests(method, 1_000, |_| {}), [1_000, 1_000]);
    });
}

#[test]
fn the_budget_of_requests_is_changed_while_the_programs_run() {
    for_each_method("request bytes", |method| {
        let raise = |source: &mut TcxSource| source.set_request_bytes(3_000).unwrap();
        assert_eq!(copied_of_two_requests(method, 1_000, raise), [1_000, 3_000]);
    });
}

/// Opens a connection to `listener`, and moves some bytes over it.
fn talk(listener: &TcpListener) {
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    server.write_all(b"not for us").unwrap();
    client.read_exact(&mut [0; 10]).unwrap();
}

#[test]
fn foreign_connections_are_counted_but_make_no_record() {
    for_each_method("foreign connections", |method| {
        let watched = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = watched.local_addr().unwrap();
        // The port filter lets the same port on another address through, the endpoint table does not.
        let same_port = TcpListener::bind(("127.0.0.2", endpoint.port())).unwrap();
        let other_port = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut source = open(endpoint, method);
        talk(&same_port);
        talk(&other_port);
        let mut recorder = Recorder::default();
        recorder.drain(&mut source);
        assert!(recorder.segments.is_empty() && recorder.transitions.is_empty());
        let counters = source.counters().unwrap();
        assert_eq!((counters.endpoint_packets, counters.segments.attempted), (0, 0));
        // Two handshakes, two payloads, their acknowledgements and ends.
        assert!(counters.packets >= 10, "{counters:?}");
        let lo = &source.interfaces().unwrap()[0];
        assert!(lo.loopback && lo.egress_packets == 0 && lo.ingress_packets >= 10, "{lo:?}");
        assert_nothing_preempted(&source);
    });
}

/// Other traffic on `lo` may have a packet between the interface's counter and the programs'.
fn assert_nothing_preempted(source: &TcxSource) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while source.interfaces().unwrap()[0].preempted() > 0 {
        assert!(Instant::now() < deadline, "{:?}", source.interfaces().unwrap());
    }
}
