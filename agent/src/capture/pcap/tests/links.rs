//! Links and headers.

use super::*;
use crate::testing::Talk;

const LINKS: [LinkType; 8] = LinkType::SUPPORTED;

fn segment(v6: bool) -> TcpSegment {
    let [source, destination] =
        if v6 { ["[2001:db8::1]:80", "[2001:db8::2]:90"] } else { ["10.0.0.1:80", "10.0.0.2:90"] };
    TcpSegment {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
        seq: 7,
        ack: 9,
        flags: 0x18,
        payload: b"hello".to_vec(),
    }
}

fn frame(link: LinkType, data: &[u8]) -> Frame<'_> {
    let original_len = u32::try_from(data.len()).unwrap();
    Frame { interface: 0, stamp: None, link, original_len, data }
}

#[test]
fn every_link_type_gives_the_same_segment() {
    for link in LINKS {
        for v6 in [false, true] {
            if (link == LinkType::IPV4 && v6) || (link == LinkType::IPV6 && !v6) {
                continue;
            }
            let segment = segment(v6);
            let bytes = link_frame(link, &segment.ip());
            let packet = parse(&frame(link, &bytes)).unwrap();
            assert_eq!((packet.source, packet.destination), (segment.source, segment.destination));
            assert_eq!((packet.seq, packet.ack, packet.flags.0), (7, 9, 0x18));
            assert_eq!((packet.payload_len, packet.payload), (5, &b"hello"[..]), "{link:?}");
        }
    }
    assert_eq!(parse(&frame(LinkType(147), b"x")), Err(Other::UnknownLink(147)));
}

#[test]
fn tags_are_passed_over_on_ethernet_and_cooked_links() {
    for (link, at) in [(LinkType::ETHERNET, 12), (LinkType::LINUX_SLL, 14)] {
        for tags in [&[0x81, 0, 0, 5][..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6]] {
            let plain = link_frame(link, &segment(false).ip());
            let bytes = [&plain[..at], tags, &plain[at..]].concat();
            assert_eq!(parse(&frame(link, &bytes)).unwrap().payload, b"hello");
        }
    }
    let mut cooked = link_frame(LinkType::LINUX_SLL2, &segment(false).ip());
    cooked[..2].copy_from_slice(&[0x81, 0]);
    cooked.splice(20..20, [0, 5, 0x08, 0]);
    assert_eq!(parse(&frame(LinkType::LINUX_SLL2, &cooked)).unwrap().payload, b"hello");
}

#[test]
fn padding_is_no_payload() {
    let mut bytes =
        link_frame(LinkType::ETHERNET, &TcpSegment { payload: vec![], ..segment(false) }.ip());
    bytes.resize(60, 0xee);
    let packet = parse(&frame(LinkType::ETHERNET, &bytes)).unwrap();
    assert_eq!((packet.payload_len, packet.payload), (0, &b""[..]));
}

#[test]
fn a_zero_length_means_the_length_on_the_wire() {
    for v6 in [false, true] {
        let large = TcpSegment { payload: vec![b'x'; 70_000], ..segment(v6) };
        let bytes = large.ip();
        let packet = parse(&frame(LinkType::RAW, &bytes)).unwrap();
        assert_eq!((packet.payload_len, packet.payload.len()), (70_000, 70_000));
    }
}

#[test]
fn bytes_beyond_the_snapshot_are_missing_and_not_absent() {
    let bytes = segment(false).ip();
    let cut = Frame { data: &bytes[..42], ..frame(LinkType::RAW, &bytes) };
    let packet = parse(&cut).unwrap();
    assert_eq!((packet.payload_len, packet.payload), (5, &b"he"[..]));
    let headless = Frame { data: &bytes[..30], ..cut };
    assert_eq!(parse(&headless), Err(Other::Unparsed));
}

#[test]
fn fragments_and_extension_headers_are_counted_and_foreign_packets_are_not() {
    let mut fragment = segment(false).ip();
    fragment[7] = 10;
    assert_eq!(parse(&frame(LinkType::RAW, &fragment)), Err(Other::Unparsed));
    let mut udp = segment(false).ip();
    udp[9] = 17;
    assert_eq!(parse(&frame(LinkType::RAW, &udp)), Err(Other::Foreign));
    let mut extended = segment(true).ip();
    extended[6] = 60;
    extended[40] = 6;
    assert_eq!(parse(&frame(LinkType::RAW, &extended)), Err(Other::Unparsed));
    extended[40] = 58;
    assert_eq!(parse(&frame(LinkType::RAW, &extended)), Err(Other::Foreign));
    let arp = [&[2; 12][..], &[0x08, 0x06], &[0; 28]].concat();
    assert_eq!(parse(&frame(LinkType::ETHERNET, &arp)), Err(Other::Foreign));
}

#[test]
fn mapped_addresses_become_plain_ones() {
    let mut mapped = segment(true);
    mapped.source = "[::ffff:10.0.0.1]:80".parse().unwrap();
    let bytes = mapped.ip();
    let packet = parse(&frame(LinkType::RAW, &bytes)).unwrap();
    assert_eq!(packet.source, "10.0.0.1:80".parse().unwrap());
}

#[test]
fn the_same_packet_on_two_interfaces_of_a_cooked_capture_is_two_views() {
    let mut talk = Talk::open();
    talk.request(b"x");
    let cooked = link_frame(LinkType::LINUX_SLL2, &tcp(talk.last()).ip());
    let mut other = cooked.clone();
    other[7] = 8;
    let mut writer = Writer::pcap(Order::Little, StampUnit::Nano, LinkType::LINUX_SLL2, 0);
    [&cooked, &other, &cooked].iter().for_each(|frame| writer.frame(0, 5, frame));
    let bytes = writer.into_bytes();
    let mut source = FileSource::open(bytes.as_slice(), [endpoint()]).unwrap();
    let mut seen = Vec::new();
    source.step(&mut |event| {
        if let crate::capture::CaptureEvent::Segment(segment) = event {
            seen.push(segment.ifindex);
        }
    });
    assert_eq!(seen, [1, 2, 1]);
    assert_eq!((source.interface_name(1), source.interface_name(2)), ("if7".into(), "if8".into()));
}
