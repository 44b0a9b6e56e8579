//! What tshark makes of a file, and that we make the same of it.
//!
//! tshark stamps a request or response with the packet that completes it, `http.time` is the
//! difference of the two; with `http.desegment_body` off, with the packet that completes the head.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use agent::capture::pcap::write::StampUnit;
use agent::capture::pcap::{LinkType, Order};
use serde_json::Value;

use crate::conversation::{Format, traffic, write};
use crate::program::{CaptureFile, rows};
use crate::tools;

/// One exchange. Stamps in nanoseconds of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Exchange {
    request_end_ns: u64,
    head_ns: u64,
    framing_end_ns: u64,
    status: u64,
}

/// A connection: its exchanges, and the payload bytes from the client and from the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Connection {
    exchanges: Vec<Exchange>,
    bytes: [u64; 2],
}

/// By the client's port.
type Connections = BTreeMap<u64, Connection>;

const FIELDS: [&str; 9] = [
    "frame.time_epoch",
    "tcp.stream",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.len",
    "http.request.method",
    "http.response.code",
    "http.time",
    "tcp.seq",
];

/// One packet, as tshark prints it.
struct Row {
    stamp_ns: u64,
    stream: u64,
    client: u64,
    from_server: bool,
    /// Payload bytes.
    len: u64,
    seq: u64,
    is_request: bool,
    status: Option<u64>,
    http_time_ns: Option<u64>,
}

/// Seconds with nine digits, as nanoseconds: a float could not hold them.
fn nanoseconds(text: &str) -> u64 {
    let (seconds, fraction) = text.split_once('.').unwrap();
    assert_eq!(fraction.len(), 9, "{text}");
    seconds.parse::<u64>().unwrap() * 1_000_000_000 + fraction.parse::<u64>().unwrap()
}

fn row(line: &str, server: u16) -> Row {
    let fields: Vec<_> = line.split('\t').collect();
    let fields: [&str; FIELDS.len()] = fields.try_into().unwrap();
    let [stamp, stream, source, destination, len, method, status, time, seq] = fields;
    let number = |text: &str| text.parse::<u64>().unwrap();
    let from_server = number(source) == u64::from(server);
    Row {
        stamp_ns: nanoseconds(stamp),
        stream: number(stream),
        client: number(if from_server { destination } else { source }),
        from_server,
        len: number(len),
        seq: number(seq),
        is_request: !method.is_empty(),
        status: (!status.is_empty()).then(|| number(status)),
        http_time_ns: (!time.is_empty()).then(|| nanoseconds(time)),
    }
}

fn packets(path: &Path, server: u16, options: &[&str]) -> Vec<Row> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(path).args(["-Y", "tcp", "-d"]);
    command.arg(format!("tcp.port=={server},http"));
    command.args(["-o", "tcp.reassemble_out_of_order:TRUE"]).args(options).args(["-T", "fields"]);
    FIELDS.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(|line| row(line, server)).collect()
}

fn by_tshark(path: &Path, server: u16) -> Connections {
    let mut connections = Connections::new();
    let mut streams = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for packet in packets(path, server, &[]) {
        assert_eq!(*streams.entry(packet.stream).or_insert(packet.client), packet.client);
        let connection = connections.entry(packet.client).or_default();
        // Segments are only ever repeated whole.
        if seen.insert((packet.stream, packet.from_server, packet.seq, packet.len)) {
            connection.bytes[usize::from(packet.from_server)] += packet.len;
        }
        take(connection, &packet);
    }
    let at_heads = packets(path, server, &["-o", "http.desegment_body:FALSE"]);
    for (client, connection) in &mut connections {
        let heads = at_heads.iter().filter(|it| it.client == *client && it.status.is_some());
        let heads: Vec<_> = heads.map(|head| head.stamp_ns).collect();
        assert_eq!(heads.len(), connection.exchanges.len());
        let exchanges = connection.exchanges.iter_mut().zip(heads);
        exchanges.for_each(|(exchange, head_ns)| exchange.head_ns = head_ns);
    }
    connections
}

fn take(connection: &mut Connection, packet: &Row) {
    if packet.is_request {
        let request_end_ns = packet.stamp_ns;
        connection.exchanges.push(Exchange { request_end_ns, ..Exchange::default() });
    }
    if let Some(status) = packet.status {
        let exchange = connection.exchanges.last_mut().unwrap();
        exchange.status = status;
        exchange.framing_end_ns = packet.stamp_ns;
        let time = packet.stamp_ns - exchange.request_end_ns;
        assert_eq!(packet.http_time_ns, Some(time), "the request that tshark means");
    }
}

fn by_us(path: &Path, server: SocketAddr) -> Connections {
    let mut connections = Connections::new();
    let mut rows = rows(path, server);
    rows.sort_by_key(|row| row["request_index"].as_u64());
    for row in &rows {
        let number = |key: &str| row[key].as_u64().unwrap();
        assert_eq!((row["framing"].as_str(), row["clock"].as_str()), (Some("valid"), Some("file")));
        let connection = connections.entry(client_port(row)).or_default();
        connection.bytes[0] += number("request_bytes");
        connection.bytes[1] += number("response_bytes");
        connection.exchanges.push(Exchange {
            request_end_ns: number("request_end_ns"),
            head_ns: number("head_ns"),
            framing_end_ns: number("framing_end_ns"),
            status: number("status"),
        });
    }
    connections
}

fn client_port(row: &Value) -> u64 {
    let peer: SocketAddr = row["peer"].as_str().unwrap().parse().unwrap();
    u64::from(peer.port())
}

/// Both agree on every time and every byte; `exchanges` is how many there must be.
pub(crate) fn assert_same(path: &Path, server: SocketAddr, exchanges: usize) {
    let ours = by_us(path, server);
    let count: usize = ours.values().map(|connection| connection.exchanges.len()).sum();
    assert_eq!(count, exchanges, "{ours:?}");
    assert_eq!(ours, by_tshark(path, server.port()));
}

const FORMATS: [(Format, Order, StampUnit); 4] = [
    (Format::PcapNg, Order::Big, StampUnit::Nano),
    (Format::Pcap, Order::Big, StampUnit::Micro),
    (Format::Pcap, Order::Little, StampUnit::Nano),
    (Format::PcapNg, Order::Little, StampUnit::Micro),
];

/// IPv6 where the link type does not say IPv4, every second one.
fn addresses(v6: bool) -> (SocketAddr, [SocketAddr; 2]) {
    let (server, clients) = if v6 {
        ("[2001:db8::1]:8000", ["[2001:db8::2]:40000", "[2001:db8::3]:40001"])
    } else {
        ("10.0.0.1:8000", ["10.0.0.2:40000", "10.0.0.3:40001"])
    };
    (server.parse().unwrap(), clients.map(|client| client.parse().unwrap()))
}

#[test]
fn times_and_bytes_are_those_of_tshark_in_every_format_and_on_every_link() {
    if !tools::available("times_and_bytes_are_those_of_tshark", &["tshark"]) {
        return;
    }
    for (index, link) in LinkType::SUPPORTED.into_iter().enumerate() {
        let v6 = link == LinkType::IPV6 || (index % 2 == 1 && link != LinkType::IPV4);
        let (server, clients) = addresses(v6);
        let format = FORMATS[index % FORMATS.len()];
        eprintln!("{format:?} {link:?} v6 {v6}");
        let file = CaptureFile::new(&write(format, link, &traffic(server, clients)));
        assert_same(&file.path, server, 4);
    }
}
