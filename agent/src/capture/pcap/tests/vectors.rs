//! Formats: byte orders, units, blocks, options, damage.

use super::*;

const STAMP: u64 = 1_700_000_000_123_456_789;

#[test]
fn every_classic_header_gives_the_same_frame() {
    for order in [Order::Little, Order::Big] {
        for (unit, stamp) in [(StampUnit::Nano, STAMP), (StampUnit::Micro, STAMP / 1000 * 1000)] {
            let mut writer = Writer::pcap(order, unit, LinkType::RAW, 3);
            writer.frame(0, STAMP, b"abcde");
            let bytes = writer.into_bytes();
            let (seen, end) = frames(&bytes);
            assert_eq!(seen, [(Some(stamp), "0".to_owned(), b"abc".to_vec())]);
            assert!(end.is_ok());
            let mut reader = Reader::open(bytes.as_slice()).unwrap();
            assert!(reader.advance().unwrap());
            let frame = reader.frame().unwrap();
            assert_eq!((frame.link, frame.original_len), (LinkType::RAW, 5));
        }
    }
}

#[test]
fn a_little_endian_microsecond_file_is_read_as_the_format_says() {
    let bytes = [
        &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..],
        &[0; 8],
        &[0xff, 0xff, 0, 0, 1, 0, 0, 0],
        &[2, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 60, 0, 0, 0, 0xaa],
    ]
    .concat();
    let (seen, end) = frames(&bytes);
    assert_eq!(seen, [(Some(2_000_003_000), "0".to_owned(), vec![0xaa])]);
    assert!(end.is_ok());
}

/// Codes and values of an interface.
type Options<'a> = &'a [(u16, &'a [u8])];

fn one_interface(options: Options<'_>) -> Writer {
    let mut writer = Writer::pcapng(Order::Little, StampUnit::Micro, 0);
    writer.interface(LinkType::RAW, options);
    writer
}

/// An enhanced packet block of one byte with these ticks.
fn enhanced(ticks: u64, more: &[u8]) -> Vec<u8> {
    let mut body = 0_u32.to_le_bytes().to_vec();
    body.extend(&ticks.to_le_bytes()[4..]);
    body.extend(&ticks.to_le_bytes()[..4]);
    body.extend([1, 0, 0, 0, 1, 0, 0, 0, 0xaa, 0, 0, 0]);
    body.extend(more);
    body
}

#[test]
fn resolution_and_offset_of_an_interface_make_its_stamps() {
    let offset = (-1_i64).to_le_bytes();
    let cases: [(Options<'_>, u64, u64); 6] = [
        (&[], 5, 5_000),
        (&[(9, &[9])], 5, 5),
        (&[(9, &[0x81])], 3, 1_500_000_000),
        (&[(9, &[0])], 2, 2_000_000_000),
        (&[(9, &[9]), (14, &offset)], 3_000_000_000, 2_000_000_000),
        (&[(9, &[0x7f])], u64::MAX, 0),
    ];
    for (options, ticks, expected) in cases {
        let mut writer = one_interface(options);
        writer.block(6, &enhanced(ticks, &[]));
        assert_eq!(frames(&writer.into_bytes()).0[0].0, Some(expected), "{options:?}");
    }
    let mut before_zero = one_interface(&[(14, &offset)]);
    before_zero.block(6, &enhanced(0, &[]));
    assert_eq!(frames(&before_zero.into_bytes()).0[0].0, Some(0));
}

#[test]
fn sections_of_both_orders_and_several_interfaces_are_told_apart_by_name() {
    let mut writer = Writer::pcapng(Order::Big, StampUnit::Nano, 0);
    writer.interface(LinkType::RAW, &[(2, b"eth0")]);
    writer.interface(LinkType::RAW, &[(2, b"eth1\x1b")]);
    writer.frame(1, 7, b"a");
    writer.set_order(Order::Little);
    writer.section();
    writer.interface(LinkType::RAW, &[(2, b"eth0")]);
    writer.frame(0, 8, b"b");
    let (seen, end) = frames(&writer.into_bytes());
    assert!(end.is_ok());
    let seen: Vec<_> = seen.iter().map(|it| (it.0, it.1.as_str(), it.2.as_slice())).collect();
    assert_eq!(seen, [(Some(7), "eth1", &b"a"[..]), (Some(8), "eth0", b"b")]);
}

#[test]
fn simple_and_obsolete_packet_blocks_are_read() {
    let mut writer = Writer::pcapng(Order::Little, StampUnit::Nano, 2);
    writer.interface(LinkType::RAW, &[(2, b"e")]);
    writer.block(3, &[5, 0, 0, 0, b'a', b'b']);
    let mut obsolete = enhanced(9, &[]);
    obsolete[2] = 3; // drops
    writer.block(2, &obsolete);
    let bytes = writer.into_bytes();
    let (seen, end) = frames(&bytes);
    assert!(end.is_ok());
    assert_eq!(seen[0], (None, "e".to_owned(), b"ab".to_vec()));
    assert_eq!(seen[1], (Some(9), "e".to_owned(), vec![0xaa]));
    let mut reader = Reader::open(bytes.as_slice()).unwrap();
    while reader.advance().unwrap() {}
    assert_eq!(reader.dropped(), 3);
}

#[test]
fn losses_that_a_file_tells_are_counted() {
    let mut writer = one_interface(&[]);
    let mut statistics = [0; 12].to_vec();
    for (code, count) in [(5_u16, 2_u64), (7, 3)] {
        statistics.extend(code.to_le_bytes());
        statistics.extend([8, 0]);
        statistics.extend(count.to_le_bytes());
    }
    writer.block(5, &statistics);
    let bytes = writer.into_bytes();
    let mut reader = Reader::open(bytes.as_slice()).unwrap();
    assert!(!reader.advance().unwrap());
    assert_eq!(reader.dropped(), 5);
}

#[test]
fn damage_ends_reading_and_says_where() {
    let mut writer = one_interface(&[]);
    writer.frame(0, 1000, b"a");
    let good = writer.clone().into_bytes();
    writer.frame(3, 1000, b"b");
    let (seen, end) = frames(&writer.into_bytes());
    assert_eq!(seen.len(), 1);
    let at = u64::try_from(good.len()).unwrap();
    assert!(matches!(end, Err(Stop::Damaged { at: found, .. }) if found == at), "{end:?}");
    let (seen, end) = frames(&good[..good.len() - 1]);
    assert!(seen.is_empty());
    assert!(matches!(end, Err(Stop::Torn { .. })), "{end:?}");
}

#[test]
fn what_is_no_capture_is_refused_with_its_mend() {
    let open = |bytes: &[u8]| Reader::open(bytes).err().unwrap().to_string();
    for (bytes, mend) in [
        (&b""[..], "SIGINT"),
        (b"hello world", "editcap"),
        (b"\x1f\x8b\x08\x00", "gzip -dc"),
        (b"\x28\xb5\x2f\xfd", "zstd -dc"),
        (b"\xd4\xc3\xb2\xa1\x02", "capture again"),
        (b"\x34\xcd\xb2\xa1\x02", "editcap"),
        (b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00aaaa", "editcap"),
    ] {
        assert!(open(bytes).contains(mend), "{bytes:x?}: {}", open(bytes));
    }
}
