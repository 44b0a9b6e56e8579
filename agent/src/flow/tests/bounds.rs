//! Nothing grows without end.

use super::*;

fn limits() -> FlowLimits {
    FlowLimits {
        parked_per_stream: 2000,
        parked_total: 5000,
        connections: 16,
        closed: 8,
        pipeline: 4,
    }
}

#[test]
fn bytes_behind_a_hole_are_bounded_per_stream() {
    let mut talk = Talk::open();
    talk.request(&post(1, "")).response(HEAD).response(&token());
    (0..200).for_each(|_| {
        talk.response(&token());
    });
    talk.packets.remove(4);
    let mut told = Told::with(limits());
    for packet in &talk.packets {
        told.take([packet]);
        assert!(told.table.parked_cost() <= 2000);
    }
    assert!(told.table.stats().evicted_flows > 0);
    talk.response(&done()).response(LAST_CHUNK).client_fin().endpoint_fin();
    told.take(&talk.packets[talk.packets.len() - 4..]);
    assert_eq!(told.outcomes(), [Outcome::Unknown]);
    assert_eq!(told.table.parked_cost(), 0);
}

#[test]
fn bytes_behind_holes_are_bounded_in_all() {
    let mut told = Told::with(limits());
    for client in 0..10_u16 {
        let mut talk = Talk::open();
        talk.request(&post(1, "")).response(&[b'x'; 10]).response(&[b'y'; 1000]);
        talk.packets.remove(3);
        talk.packets.iter_mut().for_each(|it| it.peer.set_port(10_000 + client));
        told.take(&talk.packets);
        assert!(told.table.parked_cost() <= 5000);
    }
    assert!(told.table.stats().evicted_flows > 0);
}

#[test]
fn connections_are_bounded_and_the_quietest_go_first() {
    let mut told = Told::with(limits());
    for client in 0..40_u16 {
        let mut talk = Talk::open_at(1000, 5000, u64::from(client) * 10_000);
        talk.request(&post(1, "")).response(HEAD);
        talk.packets.iter_mut().for_each(|it| it.peer.set_port(10_000 + client));
        told.take(&talk.packets);
        assert!(told.table.connections() <= 16);
    }
    let ports: Vec<_> = told.finished.iter().map(|it| it.peer.port()).collect();
    assert_eq!(ports, (10_000..10_024).collect::<Vec<_>>());
    assert!(told.outcomes().iter().all(|it| *it == Outcome::Unknown));
    assert_eq!(told.table.stats().evicted_flows, 24);
    assert_eq!(told.ended.len(), 24);
}

#[test]
fn pipelined_requests_are_bounded() {
    let mut talk = Talk::open();
    (0..50).for_each(|_| {
        talk.request(&post(1, ""));
    });
    let mut told = Told::with(limits());
    told.take(&talk.packets);
    assert!(told.table.open_requests().count() <= 4);
    assert!(told.table.stats().evicted_flows > 0);
}

#[test]
fn foreign_and_senseless_segments_leave_nothing() {
    let mut told = Told::with(limits());
    let mut foreign = Packet::new(1, false, 1, 1, b"GET / HTTP/1.1\r\n\r\n");
    for flags in 0..=255_u8 {
        for (seq, ack) in [(0, 0), (u32::MAX, 1), (1 << 31, u32::MAX)] {
            foreign.flags = flags;
            (foreign.seq, foreign.ack) = (seq, ack);
            foreign.from_endpoint = flags % 3 == 0;
            foreign.piece_offset = seq >> 3;
            foreign.payload_len = ack;
            told.take([&foreign]);
        }
    }
    assert!(told.table.connections() <= 1);
}
