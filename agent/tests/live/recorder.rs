//! Keeps what a source hands over, and puts streams together by sequence number.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use agent::capture::tcx::TcxSource;
use agent::capture::{CaptureEvent, CaptureSource as _, Retransmit, SocketTransition, TcpFlags};

/// A [`agent::capture::Segment`] that owns its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) ifindex: u32,
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) from_endpoint: bool,
    pub(crate) seq: u32,
    pub(crate) flags: TcpFlags,
    pub(crate) payload_len: u32,
    pub(crate) piece_offset: u32,
    pub(crate) payload: Vec<u8>,
}

#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) segments: Vec<Kept>,
    pub(crate) transitions: Vec<SocketTransition>,
    pub(crate) retransmits: Vec<Retransmit>,
}

/// One direction of a connection.
#[derive(Default)]
pub(crate) struct Stream {
    /// Bytes copied, by offset from the first payload byte.
    pub(crate) copied: Vec<u8>,
    /// Bytes on the wire.
    pub(crate) wire_len: u32,
}

impl Recorder {
    fn keep(&mut self, event: CaptureEvent<'_>) {
        match event {
            CaptureEvent::Socket(transition) => self.transitions.push(transition),
            CaptureEvent::Retransmit(retransmit) => self.retransmits.push(retransmit),
            CaptureEvent::Segment(it) => self.segments.push(Kept {
                ifindex: it.ifindex,
                source: it.source,
                destination: it.destination,
                from_endpoint: it.from_endpoint,
                seq: it.seq,
                flags: it.flags,
                payload_len: it.payload_len,
                piece_offset: it.piece_offset,
                payload: it.payload.to_vec(),
            }),
        }
    }

    pub(crate) fn drain(&mut self, source: &mut TcxSource) -> usize {
        source.drain(&mut |event| self.keep(event)).unwrap()
    }

    /// Polls until `done`, at most 20 s.
    pub(crate) fn poll_until(&mut self, source: &mut TcxSource, done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !done(self) {
            assert!(Instant::now() < deadline, "the awaited records did not come in 20 s");
            source.poll(Duration::from_millis(200), &mut |event| self.keep(event)).unwrap();
        }
    }

    /// The stream that one side sent; its first byte follows the SYN.
    pub(crate) fn stream(&self, from_endpoint: bool) -> Stream {
        let side = || self.segments.iter().filter(|it| it.from_endpoint == from_endpoint);
        let syn = side().find(|it| it.flags.syn()).unwrap().seq.wrapping_add(1);
        let mut pieces: BTreeMap<u32, &[u8]> = BTreeMap::new();
        let mut stream = Stream::default();
        for segment in side().filter(|it| it.payload_len > 0) {
            let start = segment.seq.wrapping_sub(syn);
            stream.wire_len = stream.wire_len.max(start + segment.payload_len);
            pieces.insert(start + segment.piece_offset, &segment.payload);
        }
        for (start, bytes) in pieces {
            if usize::try_from(start).unwrap() == stream.copied.len() {
                stream.copied.extend(bytes);
            }
        }
        stream
    }
}
