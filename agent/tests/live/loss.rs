//! A full ring: every record is accounted for all the same.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use agent::capture::CaptureSource as _;
use agent::capture::tcx::TcxSource;
use agent::window::Reason;
use serde_json::Value;

use crate::http::{exchange, request, serve, stream};
use crate::recorder::Recorder;
use crate::rig::Rig;
use crate::support::{config, for_each_method};

#[test]
fn records_that_find_no_room_are_counted_and_the_counts_reconcile() {
    for_each_method("full ring", |method| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = listener.local_addr().unwrap();
        let mut small = config(endpoint, method);
        small.ring_bytes = 64 * 1024;
        let mut source = TcxSource::open(&small).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&vec![b'y'; 1_000_000]).unwrap();
        });
        let mut received = Vec::new();
        TcpStream::connect(endpoint).unwrap().read_to_end(&mut received).unwrap();
        server.join().unwrap();

        let mut recorder = Recorder::default();
        let taken = recorder.drain(&mut source);
        let segments = source.counters().unwrap().segments;
        assert!(segments.failed > 0, "{segments:?}");
        // The gauge is kept in the kernel, and needs no room in the ring.
        assert_eq!(source.connections().unwrap()[0].change, 0);
        assert_eq!(segments.attempted - segments.failed, segments.consumed);
        let kept =
            [recorder.segments.len(), recorder.transitions.len(), recorder.retransmits.len()];
        assert_eq!(taken, kept.iter().sum::<usize>());
    });
}

#[test]
fn a_reader_that_is_stopped_for_a_quarter_of_a_second_loses_nothing() {
    /// Of 20,000 a second.
    const EVENTS: usize = 5000;
    for_each_method("stopped reader", |method| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = listener.local_addr().unwrap();
        let mut source = TcxSource::open(&config(endpoint, method)).unwrap();
        let mut client = TcpStream::connect(endpoint).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.set_nodelay(true).unwrap();
        // Nothing reads the ring meanwhile; what matters is how much is written, not how fast.
        for _ in 0..EVENTS {
            server.write_all(&[b'x'; 200]).unwrap();
            client.read_exact(&mut [0; 200]).unwrap();
        }
        let mut recorder = Recorder::default();
        recorder.drain(&mut source);
        let segments = source.counters().unwrap().segments;
        assert_eq!((segments.failed, segments.attempted), (0, segments.consumed));
        assert!(segments.consumed >= EVENTS.try_into().unwrap(), "{segments:?}");
        assert_eq!(recorder.stream(true).copied.len(), EVENTS * 200);
    });
}

/// Connections at once, and requests on each.
const CLIENTS: usize = 8;
const REQUESTS: usize = 4;

/// Every client's requests, answered whole, on connections that stay open.
fn talk(endpoint: std::net::SocketAddr, response_bytes: usize) -> Vec<TcpStream> {
    let one = || {
        let mut client = TcpStream::connect(endpoint).unwrap();
        (0..REQUESTS).for_each(|_| exchange(&mut client, &request(3_000), response_bytes));
        client
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(one)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    })
}

#[test]
fn streams_over_a_tiny_ring_are_never_called_invalid_and_the_window_says_what_is_missing() {
    for_each_method("streams over a tiny ring", |method| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = listener.local_addr().unwrap();
        let mut tiny = config(endpoint, method);
        tiny.ring_bytes = 16 * 1024;
        let mut rig = Rig::over(&tiny);
        let window = rig.open();
        let parts = stream(50);
        let response_bytes = parts.iter().map(String::len).sum();
        let serving = serve(listener, CLIENTS, &parts);
        let talking = thread::spawn(move || talk(endpoint, response_bytes));
        // The ring is read all the time, and far too small all the same: losses are everywhere.
        while !talking.is_finished() {
            rig.poll();
        }
        let clients = talking.join().unwrap();
        assert_eq!(rig.gauge().connections, Some(CLIENTS as u64), "{method:?}");
        drop(clients);
        serving.join().unwrap();
        rig.wait_for(0);

        let closing = rig.close(&window);
        let segments = closing.counters.segments;
        assert!(segments.failed > 0, "{method:?} {closing:?}");
        assert_eq!(segments.attempted - segments.failed, segments.consumed, "{closing:?}");
        assert!(!closing.complete && closing.reasons.contains(&Reason::RingFull), "{closing:?}");
        let rows = rig.rows(&window);
        let framing = |wanted: &str| {
            let with = |row: &&Value| row["framing"] == wanted;
            rows.iter().filter(with).count()
        };
        assert_eq!(framing("invalid"), 0, "{method:?} {rows:?}");
        assert!(framing("unknown") > 0, "{method:?} {rows:?}");
        assert_eq!(rig.reconciled().agreement.corrections, 0, "{method:?}");
    });
}
