//! A full ring: every record is accounted for all the same.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use agent::capture::CaptureSource as _;
use agent::capture::tcx::TcxSource;

use crate::recorder::Recorder;
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
