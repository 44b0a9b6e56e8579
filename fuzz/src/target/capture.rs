//! Capture files of both formats, from the file's first byte to observations.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use agent::capture::pcap::write::{StampUnit, TcpSegment, Writer, link_frame};
use agent::capture::pcap::{FileSource, LinkType, Order};
use agent::endpoint::{Endpoint, Role};

/// The endpoint of every seed.
pub(super) const SERVER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 8000);
const CLIENT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 40_000);

pub(super) fn run(bytes: &[u8]) {
    let Ok(source) = FileSource::open(bytes, [SERVER]) else { return };
    let endpoints = [Endpoint { address: SERVER, role: Role::Backend }];
    let mut observed = 0_u64;
    let report = agent::read::read(
        source,
        &endpoints,
        &mut |observation| {
            assert_eq!(observation.exchange.endpoint, SERVER, "an endpoint that nobody asked for");
            observed += 1;
        },
        &mut |position| assert!(position <= bytes.len() as u64, "read beyond the file"),
    );
    let rows: u64 = report.endpoints.iter().map(|endpoint| endpoint.requests).sum();
    assert_eq!(rows, observed, "the summary counts what was observed");
}

/// One conversation: handshake, request, a streamed answer in three segments, orderly end.
pub(super) fn conversation() -> Vec<(u64, TcpSegment)> {
    let request: &[u8] = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n\
        traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-a3ce929d0e0e4737-00\r\n\
        content-length: 2\r\n\r\n{}";
    let answer: [&[u8]; 3] = [
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        b"31\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n \r\n",
        b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
    ];
    let (mut client, mut server) = (0xffff_fff0_u32, 100_u32);
    let mut segments = vec![
        (1_000, segment(true, client, 0, 0x02, b"")),
        (2_000, segment(false, server, client.wrapping_add(1), 0x12, b"")),
    ];
    (client, server) = (client.wrapping_add(1), server.wrapping_add(1));
    segments.push((3_000, segment(true, client, server, 0x18, request)));
    client = client.wrapping_add(length(request));
    for (i, piece) in (4..).zip(answer) {
        segments.push((i * 1_000, segment(false, server, client, 0x18, piece)));
        server = server.wrapping_add(length(piece));
    }
    segments.push((8_000, segment(true, client, server, 0x11, b"")));
    segments.push((9_000, segment(false, server, client.wrapping_add(1), 0x11, b"")));
    segments
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(0)
}

fn segment(from_client: bool, seq: u32, ack: u32, flags: u8, payload: &[u8]) -> TcpSegment {
    let (source, destination) = if from_client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    TcpSegment { source, destination, seq, ack, flags, payload: payload.to_vec() }
}

fn v6(mut segment: TcpSegment) -> TcpSegment {
    for end in [&mut segment.source, &mut segment.destination] {
        end.set_ip(Ipv6Addr::LOCALHOST.into());
    }
    segment
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let links = [
        LinkType::ETHERNET,
        LinkType::RAW,
        LinkType::LINUX_SLL,
        LinkType::LINUX_SLL2,
        LinkType::NULL,
    ];
    let mut files = Vec::new();
    for (i, link) in links.into_iter().enumerate() {
        let order = if i % 2 == 0 { Order::Little } else { Order::Big };
        let unit = if i % 2 == 0 { StampUnit::Nano } else { StampUnit::Micro };
        let mut classic = Writer::pcap(order, unit, link, 0);
        let mut blocks = Writer::pcapng(order, unit, 0);
        blocks.interface(link, &[(2, b"eth0"), (9, &[9])]);
        for (stamp, segment) in conversation() {
            let segment = if i == 1 { v6(segment) } else { segment };
            let frame = link_frame(link, &segment.ip());
            classic.frame(0, stamp, &frame);
            blocks.frame(0, stamp, &frame);
        }
        blocks.block(0x0bad_0bad, &[1, 2, 3]);
        files.extend([classic.into_bytes(), blocks.into_bytes()]);
    }
    files
}
