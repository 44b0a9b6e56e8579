//! Any bytes, any damage, any cut.

use proptest::prelude::*;

use super::*;
use crate::testing::{Talk, post, stream};

fn talk() -> Vec<Scripted> {
    let mut talk = Talk::open();
    talk.request(&post(1, "hello"));
    for part in stream(5).chunks(40) {
        talk.response(part);
    }
    talk.client_fin().endpoint_fin();
    talk.packets
}

/// Gives one byte at a time.
struct Slow<'a>(&'a [u8]);

impl std::io::Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = buffer.len().min(1);
        self.0.read(&mut buffer[..len])
    }
}

#[test]
fn both_formats_and_orders_hold_the_same_segments_however_slowly_they_come() {
    let packets = talk();
    let files = [Order::Little, Order::Big].map(|it| [pcap(it, &packets), pcapng(it, &packets)]);
    let expected: Vec<_> =
        packets.iter().map(|packet| (Some(packet.stamp), ethernet(packet))).collect();
    for bytes in files.iter().flatten() {
        let (seen, end) = frames(bytes);
        let seen: Vec<_> = seen.into_iter().map(|(stamp, _, data)| (stamp, data)).collect();
        assert!(end.is_ok());
        assert_eq!(seen, expected);
        let mut reader = Reader::open(Slow(bytes)).unwrap();
        let mut count = 0;
        while reader.advance().unwrap() {
            count += 1;
        }
        assert_eq!(count, packets.len());
    }
}

proptest! {
    #[test]
    fn no_mutation_or_truncation_panics(
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..20),
        len in any::<usize>(),
        ng in any::<bool>(),
        big in any::<bool>(),
    ) {
        let order = if big { Order::Big } else { Order::Little };
        let mut bytes = if ng { pcapng(order, &talk()) } else { pcap(order, &talk()) };
        for (at, value) in changes {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        bytes.truncate(len % (bytes.len() + 1));
        let frames = decode_all(&bytes).map_or(0, |decoded| decoded.frames);
        // A frame takes at least its record's header.
        prop_assert!(frames * 16 <= bytes.len() as u64);
    }

    #[test]
    fn no_bytes_panic(
        magic in 0..5_usize,
        rest in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let starts: [&[u8]; 5] = [
            b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x0a\x0d\x0d\x0a", b"",
            b"\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x1c\0\0\0",
        ];
        let bytes = [starts[magic], &rest].concat();
        let frames = decode_all(&bytes).map_or(0, |decoded| decoded.frames);
        prop_assert!(frames * 16 <= bytes.len() as u64);
    }

    #[test]
    fn a_torn_file_gives_every_record_before_the_tear(len in any::<usize>(), ng in any::<bool>()) {
        let packets = talk();
        let bytes = if ng { pcapng(Order::Big, &packets) } else { pcap(Order::Little, &packets) };
        let whole = frames(&bytes).0;
        let header = if ng { 28 } else { 24 };
        let len = header + len % (bytes.len() - header);
        let (seen, _) = frames(&bytes[..len]);
        prop_assert_eq!(&whole[..seen.len()], seen.as_slice());
    }
}
