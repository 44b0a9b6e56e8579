//! Whatever the network sends: no panic, bounded memory, every request that began ends.

use proptest::prelude::*;

use super::*;

/// Numbers near those that a connection uses, or any.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => 900_u32..2500,
        1 => prop::sample::select(vec![0, 1, u32::MAX, 1 << 30, 1 << 31, 0x7fff_ffff]),
        1 => any::<u32>(),
    ]
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        2 => Just(Vec::new()),
        2 => prop::collection::vec(any::<u8>(), 1..200),
        2 => Just(post(1, "hello")),
        2 => Just(stream(2)),
        1 => Just(HEAD.to_vec()),
        1 => Just(vec![0x16, 0x03, 0x01]),
        1 => Just(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        1 => Just(b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()),
        1 => Just(b"HTTP/1.1 101 Switching Protocols\r\n\r\n".to_vec()),
    ]
}

prop_compose! {
    fn packet()(
        stamp in prop_oneof![0_u64..10_000_000_000, any::<u64>()],
        from_endpoint in any::<bool>(),
        port in 40_000_u16..40_003,
        seq in number(),
        ack in number(),
        flags in any::<u8>(),
        payload in payload(),
        more in prop_oneof![3 => Just(0), 1 => 0_u32..70_000, 1 => any::<u32>()],
        piece_offset in prop_oneof![3 => Just(0), 1 => 0_u32..70_000, 1 => any::<u32>()],
        ifindex in 0_u32..3,
        cpu in 0_u32..20,
    ) -> Packet {
        let mut packet = Packet::new(stamp, from_endpoint, seq, ack, &payload);
        packet.payload_len = packet.payload_len.saturating_add(more);
        packet.peer.set_port(port);
        packet.flags = flags;
        Packet { piece_offset, ifindex, cpu, ..packet }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_segments_neither_panic_nor_leave_anything(
        packets in prop::collection::vec(packet(), 1..60),
        now in any::<u64>(),
    ) {
        let limits = FlowLimits {
            parked_per_stream: 2000,
            parked_total: 3000,
            connections: 2,
            closed: 2,
            pipeline: 3,
        };
        let mut told = Told::with(limits);
        for packet in &packets {
            told.take([packet]);
            prop_assert!(told.table.parked_cost() <= limits.parked_total);
            prop_assert!(told.table.connections() <= limits.connections);
        }
        told.settle(now).settle(u64::MAX).flush();
        let open = told.table.open_requests().count();
        prop_assert_eq!(told.started.len(), told.ended.len() + open);
        prop_assert_eq!(told.opened, told.closed + told.table.connections().min(told.opened - told.closed));
    }
}
