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

const LIMITS: FlowLimits = FlowLimits {
    parked_per_stream: 2000,
    parked_total: 3000,
    connections: 2,
    closed: 2,
    pipeline: 3,
};

/// Every request began once and ended once, and has one observation, or is still to have it.
fn check_books(told: &Told) -> Result<(), TestCaseError> {
    let table = &told.table;
    prop_assert_eq!(told.started.len(), told.ended.len() + table.in_flight());
    prop_assert_eq!(told.started.len(), told.finished.len() + table.open_requests().count());
    let mut rows: Vec<_> = told.finished.iter().map(|it| (it.connection, it.index)).collect();
    rows.sort_unstable();
    rows.dedup();
    prop_assert_eq!(rows.len(), told.finished.len());
    for exchange in &told.finished {
        let judged = exchange.framing() == exchange.response.framing;
        let excused = exchange.doubtful || exchange.unknowable || exchange.opaque.is_some();
        prop_assert!(judged || excused);
        let end = exchange.request_end;
        prop_assert!(end.is_none() || exchange.request_first <= end);
        prop_assert!(exchange.end.is_some() || exchange.opaque.is_some());
    }
    Ok(())
}

#[test]
fn a_request_that_was_lost_is_over_with_its_response() {
    let mut syn = Packet::new(0, false, 900, 900, b"");
    syn.flags = 0x60 | 0x08 | SYN;
    // Acknowledges two bytes of a request that nobody saw.
    let mut reply = Packet::new(0, true, 900, 903, &stream(2));
    reply.flags = 0x60 | 0x08 | SYN | ACK;
    let mut told = Told::with(LIMITS);
    told.take([&syn, &reply]).flush();
    assert_eq!((told.started.len(), told.ended.len()), (1, 1));
    assert_eq!(told.table.open_requests().count(), 0);
    assert_eq!(told.one().request_first, None);
}

/// A request is seen first when its first byte is, however late the bytes before it are given up.
#[test]
fn a_request_whose_start_was_lost_is_seen_with_the_bytes_that_came() {
    let request = post(1, "hello");
    let mut talk = Talk::open();
    talk.request(&request[..20]).request(&request[20..]).response(&stream(2));
    let behind = talk.packets[3].stamp;
    talk.packets.remove(2);
    let exchange = Told::of(&talk.packets).one();
    assert_eq!(Some(exchange.seen), ns(behind));
}

#[test]
fn a_request_behind_its_clients_fin_ends_no_earlier_than_it_began() {
    let mut talk = Talk::open();
    talk.client_fin();
    talk.client = talk.client.wrapping_sub(1);
    talk.request(&post(1, "hello")).endpoint_fin();
    let exchange = Told::of(&talk.packets).one();
    assert_eq!(Some(exchange.seen), exchange.end);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_segments_neither_panic_nor_leave_anything(
        mut packets in prop::collection::vec(packet(), 1..60),
        in_time in any::<bool>(),
        now in any::<u64>(),
    ) {
        if in_time {
            packets.sort_by_key(|packet| packet.stamp);
        }
        let mut told = Told::with(LIMITS);
        for packet in &packets {
            told.take([packet]);
            prop_assert!(told.table.parked_cost() <= LIMITS.parked_total);
            prop_assert!(told.table.connections() <= LIMITS.connections);
        }
        told.settle(now).settle(u64::MAX).flush();
        check_books(&told)?;
        for exchange in told.finished.iter().filter(|_| in_time) {
            prop_assert!(exchange.request_first.is_none_or(|first| exchange.seen <= first));
            prop_assert!(exchange.end.is_none_or(|end| exchange.seen <= end));
        }
        prop_assert_eq!(told.opened, told.closed + told.table.connections().min(told.opened - told.closed));
    }
}
