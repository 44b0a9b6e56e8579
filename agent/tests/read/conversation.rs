//! Conversations written down as captures.

use std::net::SocketAddr;

use agent::capture::pcap::write::{StampUnit, TcpSegment, Writer, link_frame};
use agent::capture::pcap::{LinkType, Order};

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const PUSH: u8 = 0x08;
const ACK: u8 = 0x10;

/// First stamp of a conversation: of a size that fills every digit of a file's stamps.
const BEGIN_NS: u64 = 1_700_000_000_123_456_789;
/// From one segment to the next.
const STEP_NS: u64 = 4_007_001;

/// A segment and when it was seen.
pub(crate) type Stamped = (u64, TcpSegment);

/// One connection.
pub(crate) struct Conversation {
    client: SocketAddr,
    server: SocketAddr,
    sent: u32,
    received: u32,
    stamp_ns: u64,
    pub(crate) segments: Vec<Stamped>,
}

impl Conversation {
    /// A connection after its handshake. `delay_ns` sets its stamps apart from others'.
    pub(crate) fn open(client: SocketAddr, server: SocketAddr, delay_ns: u64) -> Self {
        let (sent, received) = (u32::MAX - 20, 70_000);
        let stamp_ns = BEGIN_NS + delay_ns;
        let mut talk = Self { client, server, sent, received, stamp_ns, segments: Vec::new() };
        talk.client_sends(SYN, b"");
        talk.server_sends(SYN | ACK, b"");
        talk.client_sends(ACK, b"");
        talk
    }

    pub(crate) fn request(&mut self, bytes: &[u8]) -> &mut Self {
        self.client_sends(PUSH | ACK, bytes)
    }

    pub(crate) fn response(&mut self, bytes: &[u8]) -> &mut Self {
        self.server_sends(PUSH | ACK, bytes);
        self.client_sends(ACK, b"")
    }

    pub(crate) fn close(&mut self) -> &mut Self {
        self.client_sends(FIN | ACK, b"");
        self.server_sends(FIN | ACK, b"");
        self.client_sends(ACK, b"")
    }

    /// The last but `back` segment is seen once more, now.
    pub(crate) fn repeat(&mut self, back: usize) -> &mut Self {
        let (_, segment) = self.segments[self.segments.len() - 1 - back].clone();
        let stamp = self.tick();
        self.segments.push((stamp, segment));
        self
    }

    /// The last two segments with payload overtake each other; stamps stay in order.
    pub(crate) fn overtake(&mut self) -> &mut Self {
        let mut with_payload = (0..self.segments.len()).rev();
        let mut find = || with_payload.find(|at| !self.segments[*at].1.payload.is_empty());
        let (last, before) = (find().unwrap(), find().unwrap());
        let [last_ns, before_ns] = [self.segments[last].0, self.segments[before].0];
        self.segments.swap(last, before);
        self.segments[last].0 = last_ns;
        self.segments[before].0 = before_ns;
        self
    }

    fn tick(&mut self) -> u64 {
        self.stamp_ns += STEP_NS;
        self.stamp_ns
    }

    fn client_sends(&mut self, flags: u8, payload: &[u8]) -> &mut Self {
        let ack = if flags & ACK == 0 { 0 } else { self.received };
        let segment = TcpSegment {
            source: self.client,
            destination: self.server,
            seq: self.sent,
            ack,
            flags,
            payload: payload.to_vec(),
        };
        self.sent = self.sent.wrapping_add(length(&segment));
        self.push(segment)
    }

    fn server_sends(&mut self, flags: u8, payload: &[u8]) -> &mut Self {
        let segment = TcpSegment {
            source: self.server,
            destination: self.client,
            seq: self.received,
            ack: self.sent,
            flags,
            payload: payload.to_vec(),
        };
        self.received = self.received.wrapping_add(length(&segment));
        self.push(segment)
    }

    fn push(&mut self, segment: TcpSegment) -> &mut Self {
        let stamp = self.tick();
        self.segments.push((stamp, segment));
        self
    }
}

/// In sequence numbers: SYN and FIN take one.
fn length(segment: &TcpSegment) -> u32 {
    let control = segment.flags & (SYN | FIN) != 0;
    u32::try_from(segment.payload.len()).unwrap() + u32::from(control)
}

/// Two connections at once with four requests: a body in parts, a stream with a lost and a repeated
/// segment and one that was overtaken, a response with Content-Length, sequence numbers that wrap.
pub(crate) fn traffic(server: SocketAddr, client: [SocketAddr; 2]) -> Vec<Stamped> {
    let mut long = Conversation::open(client[0], server, 0);
    let request = post(300);
    let (head, body) = request.split_at(request.len() - 200);
    long.request(head).request(body);
    stream(&mut long, 6);
    long.repeat(3);
    long.request(&post(5));
    stream(&mut long, 4);
    long.close();
    let mut short = Conversation::open(client[1], server, 1_000_003);
    short.request(&post(20));
    stream(&mut short, 2);
    short.request(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n");
    short.response(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n",
    );
    short.response(b"{\"data\":").response(b"[] }").overtake();
    short.close();
    let mut all = [long.segments, short.segments].concat();
    all.sort_by_key(|(stamp, _)| *stamp);
    all
}

fn post(body: usize) -> Vec<u8> {
    let head =
        format!("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {body}\r\n\r\n");
    [head.into_bytes(), vec![b'{'; body]].concat()
}

fn stream(talk: &mut Conversation, tokens: usize) {
    talk.response(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    for token in 0..tokens {
        let delta = format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"w{token}"}}}}]}}"#);
        talk.response(&event(&delta));
    }
    talk.response(&event(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#));
    talk.response(&event("[DONE]")).response(b"0\r\n\r\n");
}

fn event(data: &str) -> Vec<u8> {
    let event = format!("data: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

/// Which file the segments go into.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Format {
    Pcap,
    PcapNg,
}

/// The segments as a file.
pub(crate) fn write(
    (format, order, unit): (Format, Order, StampUnit),
    link: LinkType,
    segments: &[Stamped],
) -> Vec<u8> {
    let mut writer = match format {
        Format::Pcap => Writer::pcap(order, unit, link, 0),
        Format::PcapNg => {
            let mut writer = Writer::pcapng(order, unit, 0);
            writer.interface(link, &[]);
            writer
        }
    };
    for (stamp, segment) in segments {
        writer.frame(0, *stamp, &link_frame(link, &segment.ip()));
    }
    writer.into_bytes()
}

/// The traffic on Ethernet over IPv4, as a plain file, and its server.
pub(crate) fn plain() -> (Vec<u8>, SocketAddr) {
    let server = "10.0.0.1:8000".parse().unwrap();
    let client = ["10.0.0.2:40000", "10.0.0.3:40001"].map(|it| it.parse().unwrap());
    let format = (Format::Pcap, Order::Little, StampUnit::Nano);
    (write(format, LinkType::ETHERNET, &traffic(server, client)), server)
}
