//! Scripted segments and a source of them, for tests.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use protocol::Nanos;

use crate::capture::{
    CaptureCounters, CaptureError, CaptureEvent, CaptureSource, Segment, SocketTransition, TcpFlags,
};
use crate::inflight::gauge_change;
use crate::source::LiveSource;

pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const ACK: u8 = 0x10;

pub(crate) fn endpoint() -> SocketAddr {
    "10.0.0.1:8000".parse().unwrap()
}

pub(crate) fn peer() -> SocketAddr {
    "10.0.0.2:40000".parse().unwrap()
}

/// A segment that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) stamp: u64,
    pub(crate) from_endpoint: bool,
    pub(crate) peer: SocketAddr,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) payload: Vec<u8>,
    pub(crate) payload_len: u32,
    pub(crate) piece_offset: u32,
    pub(crate) ifindex: u32,
    pub(crate) cpu: u32,
}

impl Packet {
    pub(crate) fn new(stamp: u64, from_endpoint: bool, seq: u32, ack: u32, bytes: &[u8]) -> Self {
        Self {
            stamp,
            from_endpoint,
            peer: peer(),
            seq,
            ack,
            flags: ACK,
            payload: bytes.to_vec(),
            payload_len: u32::try_from(bytes.len()).unwrap(),
            piece_offset: 0,
            ifindex: 1,
            cpu: 0,
        }
    }

    pub(crate) fn with_flags(mut self, flags: u8) -> Self {
        self.flags |= flags;
        self
    }

    /// Only its header was copied.
    pub(crate) fn uncopied(mut self) -> Self {
        self.payload.clear();
        self
    }

    /// The packet as the kernel writes it, in pieces of `len` bytes.
    pub(crate) fn pieces(&self, len: usize) -> Vec<Self> {
        let piece = |(index, bytes): (usize, &[u8])| Self {
            payload: bytes.to_vec(),
            piece_offset: u32::try_from(index * len).unwrap(),
            ..self.clone()
        };
        self.payload.chunks(len).enumerate().map(piece).collect()
    }

    pub(crate) fn segment(&self) -> Segment<'_> {
        let (source, destination) =
            if self.from_endpoint { (endpoint(), self.peer) } else { (self.peer, endpoint()) };
        Segment {
            stamp: Nanos::new(self.stamp),
            ifindex: self.ifindex,
            source,
            destination,
            from_endpoint: self.from_endpoint,
            seq: self.seq,
            ack: self.ack,
            flags: TcpFlags(self.flags),
            payload_len: self.payload_len,
            piece_offset: self.piece_offset,
            payload: &self.payload,
            cpu: self.cpu,
        }
    }
}

/// What a script does next.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Packet(Packet),
    Socket(SocketTransition),
    /// A transition whose record finds no room: only the kernel's gauge tells of it.
    LostSocket(SocketTransition),
    /// A record that finds no room.
    Fail,
    /// The source breaks.
    Break,
}

/// A source that delivers what a test sends.
pub(crate) struct ScriptedSource {
    steps: Receiver<Step>,
    counters: Arc<Mutex<CaptureCounters>>,
    gauges: BTreeMap<SocketAddr, i64>,
    request_bytes: Arc<Mutex<Vec<u32>>>,
}

/// The test's end of a [`ScriptedSource`].
#[derive(Clone)]
pub(crate) struct Script {
    steps: Sender<Step>,
    pub(crate) counters: Arc<Mutex<CaptureCounters>>,
    /// Every request budget that was asked for.
    pub(crate) request_bytes: Arc<Mutex<Vec<u32>>>,
}

impl Script {
    pub(crate) fn send(&self, step: Step) {
        self.steps.send(step).unwrap();
    }

    pub(crate) fn packets(&self, packets: &[Packet]) {
        packets.iter().for_each(|packet| self.send(Step::Packet(packet.clone())));
    }
}

pub(crate) fn scripted() -> (Script, ScriptedSource) {
    let (sender, steps) = channel();
    let counters = Arc::new(Mutex::new(CaptureCounters::default()));
    let request_bytes = Arc::new(Mutex::new(Vec::new()));
    let source = ScriptedSource {
        steps,
        counters: Arc::clone(&counters),
        gauges: BTreeMap::new(),
        request_bytes: Arc::clone(&request_bytes),
    };
    (Script { steps: sender, counters, request_bytes }, source)
}

impl ScriptedSource {
    fn count(&mut self, transition: &SocketTransition) {
        if let Some(change) = gauge_change(transition.old_state, transition.new_state)
            && transition.at_endpoint
        {
            *self.gauges.entry(transition.local).or_insert(0) += change;
        }
    }

    fn hand_over(
        &mut self,
        step: Step,
        sink: &mut dyn FnMut(CaptureEvent<'_>),
    ) -> Result<usize, CaptureError> {
        if let Step::Socket(transition) | Step::LostSocket(transition) = &step {
            self.count(transition);
        }
        let mut counters = self.counters.lock().unwrap();
        match step {
            Step::Packet(packet) => {
                counters.segments.attempted += 1;
                counters.segments.consumed += 1;
                counters.endpoint_packets += 1;
                counters.packets += 1;
                sink(CaptureEvent::Segment(packet.segment()));
                Ok(1)
            }
            Step::Socket(transition) => {
                counters.sockets.attempted += 1;
                counters.sockets.consumed += 1;
                sink(CaptureEvent::Socket(transition));
                Ok(1)
            }
            Step::LostSocket(_) => {
                counters.sockets.attempted += 1;
                counters.sockets.failed += 1;
                Ok(0)
            }
            Step::Fail => {
                counters.segments.attempted += 1;
                counters.segments.failed += 1;
                Ok(0)
            }
            Step::Break => {
                Err(CaptureError::Program { what: "broken".to_owned(), mend: "none".to_owned() })
            }
        }
    }
}

impl CaptureSource for ScriptedSource {
    fn poll(
        &mut self,
        timeout: Duration,
        sink: &mut dyn FnMut(CaptureEvent<'_>),
    ) -> Result<usize, CaptureError> {
        match self.steps.recv_timeout(timeout) {
            Ok(step) => Ok(self.hand_over(step, sink)? + self.drain(sink)?),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(0),
        }
    }

    fn drain(&mut self, sink: &mut dyn FnMut(CaptureEvent<'_>)) -> Result<usize, CaptureError> {
        let mut taken = 0;
        while let Ok(step) = self.steps.try_recv() {
            taken += self.hand_over(step, sink)?;
        }
        Ok(taken)
    }

    fn counters(&mut self) -> Result<CaptureCounters, CaptureError> {
        Ok(*self.counters.lock().unwrap())
    }

    fn name(&self) -> &'static str {
        "scripted"
    }
}

impl LiveSource for ScriptedSource {
    fn connection_changes(&self) -> Option<Vec<(SocketAddr, i64)>> {
        Some(self.gauges.iter().map(|(endpoint, change)| (*endpoint, *change)).collect())
    }

    fn set_request_bytes(&mut self, bytes: u32) -> Result<(), CaptureError> {
        self.request_bytes.lock().unwrap().push(bytes);
        Ok(())
    }

    fn set_endpoints(&mut self, endpoints: &[SocketAddr]) -> Result<(), CaptureError> {
        self.gauges.retain(|endpoint, _| endpoints.contains(endpoint));
        Ok(())
    }
}

/// A connection between one client and the endpoint that writes its own packets.
#[derive(Clone, Debug)]
pub(crate) struct Talk {
    pub(crate) client: u32,
    pub(crate) server: u32,
    pub(crate) stamp: u64,
    pub(crate) packets: Vec<Packet>,
}

impl Talk {
    /// A connection whose payload begins at these sequence numbers; nothing said yet.
    pub(crate) fn silent(client: u32, server: u32, stamp: u64) -> Self {
        Self { client, server, stamp, packets: Vec::new() }
    }

    /// A connection after its handshake.
    pub(crate) fn open() -> Self {
        Self::open_at(1000, 5000, 1_000_000)
    }

    pub(crate) fn open_at(client: u32, server: u32, stamp: u64) -> Self {
        let mut talk = Self::silent(client, server, stamp);
        let mut syn = Packet::new(talk.tick(), false, client.wrapping_sub(1), 0, b"");
        syn.flags = SYN;
        let stamp = talk.tick();
        let reply = Packet::new(stamp, true, server.wrapping_sub(1), client, b"").with_flags(SYN);
        talk.packets.extend([syn, reply]);
        talk
    }

    fn tick(&mut self) -> u64 {
        self.stamp += 1000;
        self.stamp
    }

    pub(crate) fn request(&mut self, bytes: &[u8]) -> &mut Self {
        let packet = Packet::new(self.tick(), false, self.client, self.server, bytes);
        self.client = self.client.wrapping_add(packet.payload_len);
        self.packets.push(packet);
        self
    }

    pub(crate) fn response(&mut self, bytes: &[u8]) -> &mut Self {
        let packet = Packet::new(self.tick(), true, self.server, self.client, bytes);
        self.server = self.server.wrapping_add(packet.payload_len);
        self.packets.push(packet);
        self
    }

    pub(crate) fn client_fin(&mut self) -> &mut Self {
        let packet = Packet::new(self.tick(), false, self.client, self.server, b"");
        self.client = self.client.wrapping_add(1);
        self.packets.push(packet.with_flags(FIN));
        self
    }

    pub(crate) fn endpoint_fin(&mut self) -> &mut Self {
        let packet = Packet::new(self.tick(), true, self.server, self.client, b"");
        self.server = self.server.wrapping_add(1);
        self.packets.push(packet.with_flags(FIN));
        self
    }

    pub(crate) fn reset(&mut self, from_endpoint: bool) -> &mut Self {
        let (seq, ack) =
            if from_endpoint { (self.server, self.client) } else { (self.client, self.server) };
        let packet = Packet::new(self.tick(), from_endpoint, seq, ack, b"");
        self.packets.push(packet.with_flags(RST));
        self
    }

    pub(crate) fn last(&mut self) -> &mut Packet {
        self.packets.last_mut().unwrap()
    }
}

/// A request with a trace id that ends in `number`.
pub(crate) fn post(number: u8, body: &str) -> Vec<u8> {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n\
         traceparent: 00-4bf92f3577b34da6a3ce929d0e0e47{number:02x}-00f067aa0ba902b7-00\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

pub(crate) const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

fn chunk(data: &str) -> Vec<u8> {
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

pub(crate) fn token() -> Vec<u8> {
    chunk("data: {\"id\":\"r\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"secret\"}}]}\n\n")
}

pub(crate) fn done() -> Vec<u8> {
    let finish = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    [chunk(finish), chunk("data: [DONE]\n\n")].concat()
}

/// A whole good stream of `tokens` tokens.
pub(crate) fn stream(tokens: usize) -> Vec<u8> {
    let tokens: Vec<u8> = std::iter::repeat_with(token).take(tokens).flatten().collect();
    [HEAD, &tokens, &done(), LAST_CHUNK].concat()
}
