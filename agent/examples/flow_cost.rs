//! What flows cost: nanoseconds per event segment, and bytes of memory per connection.
//!
//! `cargo run --release -p agent --example flow_cost` prints one line per figure. The segments hold
//! one SSE event of 200 bytes each and go through flows and protocol, on one thread.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use agent::capture::{Segment, TcpFlags};
use agent::flow::{FlowLimits, FlowTable};
use protocol::Nanos;

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const EVENTS: u32 = 2_000_000;
const CONNECTIONS: u32 = 10_000;
const REQUEST: &[u8] = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n\
    traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00\r\n\
    Content-Length: 0\r\n\r\n";
const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const END: &[u8] = b"0\r\n\r\n";

fn endpoint() -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, 1), 8000).into()
}

/// One chunk with one event, 200 bytes in all.
fn event() -> Vec<u8> {
    let json = |id: &str| {
        let choices = "[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]";
        format!("data: {{\"id\":\"{id}\",\"model\":\"m\",\"choices\":{choices}}}\n\n")
    };
    let id = "x".repeat(200 - "c2\r\n\r\n".len() - json("").len());
    let data = json(&id);
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

/// One connection's next sequence numbers.
struct Talk {
    peer: SocketAddr,
    client: u32,
    server: u32,
}

impl Talk {
    fn open(number: u32, table: &mut FlowTable) -> Self {
        let [_, _, high, low] = number.to_be_bytes();
        let peer = (Ipv4Addr::new(10, 1, high, low), 40_000).into();
        let mut talk = Self { peer, client: 1, server: 1 };
        talk.say(false, SYN, b"", table);
        talk.say(true, SYN | ACK, b"", table);
        (talk.client, talk.server) = (2, 2);
        talk
    }

    fn say(&mut self, from_endpoint: bool, flags: u8, payload: &[u8], table: &mut FlowTable) {
        let (from, to) =
            if from_endpoint { (endpoint(), self.peer) } else { (self.peer, endpoint()) };
        let (seq, ack) =
            if from_endpoint { (self.server, self.client) } else { (self.client, self.server) };
        let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        table.take(&Segment {
            stamp: Nanos::new(u64::from(self.server) + 1),
            ifindex: 1,
            source: from,
            destination: to,
            from_endpoint,
            seq,
            ack,
            flags: TcpFlags(flags),
            payload_len: len,
            piece_offset: 0,
            payload,
            cpu: 0,
        });
        let next = if from_endpoint { &mut self.server } else { &mut self.client };
        *next = next.wrapping_add(len);
    }

    fn begin(&mut self, table: &mut FlowTable) {
        self.say(false, ACK, REQUEST, table);
        self.say(true, ACK, HEAD, table);
    }
}

/// Anonymous memory of this process, in bytes (`man 5 proc_pid_status`).
fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn time_events() {
    let mut table = FlowTable::new([endpoint()], FlowLimits::default());
    let event = event();
    let mut streams: Vec<_> = (0..200).map(|number| Talk::open(number, &mut table)).collect();
    streams.iter_mut().for_each(|talk| talk.begin(&mut table));
    let rounds = EVENTS / 200;
    let start = Instant::now();
    for _ in 0..rounds {
        streams.iter_mut().for_each(|talk| talk.say(true, ACK, &event, &mut table));
        table.take_events();
    }
    let ns = start.elapsed().as_nanos() / u128::from(rounds * 200);
    println!("ns_per_event_segment {ns} (events of {} bytes, 200 streams)", event.len());
}

fn weigh(name: &str, events: usize, complete: bool) {
    let before = anonymous_bytes();
    let mut table = FlowTable::new([endpoint()], FlowLimits::default());
    let event = event();
    let mut talks: Vec<_> = (0..CONNECTIONS).map(|number| Talk::open(number, &mut table)).collect();
    if events > 0 {
        talks.iter_mut().for_each(|talk| talk.begin(&mut table));
        for _ in 0..events {
            talks.iter_mut().for_each(|talk| talk.say(true, ACK, &event, &mut table));
        }
    }
    if complete {
        talks.iter_mut().for_each(|talk| talk.say(true, ACK, END, &mut table));
        table.flush();
    }
    table.take_events().clear();
    let bytes = anonymous_bytes().saturating_sub(before) / u64::from(CONNECTIONS);
    println!("bytes_per_{name}_connection {bytes} ({CONNECTIONS} connections)");
    // Memory that is given back and taken again would not be seen to grow.
    std::mem::forget(table);
}

fn main() {
    weigh("fresh", 0, false);
    weigh("streaming", 50, false);
    weigh("idle", 50, true);
    time_events();
}
