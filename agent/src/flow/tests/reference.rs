//! One direction against the simplest reassembler that can be written.

use proptest::prelude::*;

use super::*;
use crate::flow::limits::Budget;
use crate::flow::stream::{Delivery, Stream};

/// Every byte that was ever seen, by place; what has come in order is the prefix without a hole.
fn prefix(seen: &[Option<u8>]) -> Vec<u8> {
    seen.iter().map_while(|byte| *byte).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn the_bytes_in_order_are_those_of_a_plain_array(
        data in prop::collection::vec(any::<u8>(), 1..600),
        first in prop_oneof![any::<u32>(), 0xffff_fe00..=u32::MAX],
        parts in prop::collection::vec((any::<usize>(), 1_usize..90, 1_u32..4), 1..80),
    ) {
        let mut stream = Stream::default();
        let mut budget = Budget::new(FlowLimits::default());
        let mut seen = vec![None; data.len()];
        let mut read = Vec::new();
        stream.begin(first);
        for (start, len, ifindex) in parts {
            let start = start % data.len();
            let end = data.len().min(start + len);
            let seq = first.wrapping_add(u32::try_from(start).unwrap());
            let mut packet = Packet::new(1, true, seq, 0, &data[start..end]);
            packet.ifindex = ifindex;
            let told = stream.insert(&packet.segment(), &mut budget, &mut |part| match part {
                Delivery::Bytes(bytes, _) => read.extend_from_slice(bytes),
                Delivery::Unseen(..) | Delivery::Lost(..) => panic!("nothing was lost"),
            });
            // A lone byte that repeats the last one may be a keep-alive probe: never compared.
            prop_assert!(!told.conflict && !told.stray && !told.evicted);
            seen[start..end].iter_mut().zip(&data[start..end]).for_each(|(at, byte)| *at = Some(*byte));
            prop_assert_eq!(&read, &prefix(&seen));
        }
        stream.clear(&mut budget);
        prop_assert_eq!(budget.used(), 0);
    }
}
