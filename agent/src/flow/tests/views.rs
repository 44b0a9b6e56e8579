//! Packets of many kilobytes, and packets seen on several interfaces.

use super::*;

fn talk() -> Talk {
    let mut talk = Talk::open();
    talk.request(&post(1, "hello"));
    talk.response(HEAD).response(&token()).response(&token());
    talk.response(&[done(), LAST_CHUNK.to_vec()].concat()).client_fin().endpoint_fin();
    talk
}

/// One response packet of about 64 KiB, as a card that merges segments delivers it.
fn large() -> (Talk, usize) {
    let tokens = (65_000 - stream(0).len()) / token().len();
    let mut talk = Talk::open();
    talk.request(&post(1, "")).response(&stream(tokens));
    talk.request(&post(2, "")).response(&stream(2));
    (talk, tokens)
}

fn in_pieces(packets: &[Packet]) -> Vec<Packet> {
    let pieces = |it: &Packet| match it.payload.is_empty() {
        true => vec![it.clone()],
        false => it.pieces(4096),
    };
    packets.iter().flat_map(pieces).collect()
}

#[test]
fn events_are_read_across_the_pieces_of_a_large_packet() {
    let (talk, tokens) = large();
    let mut told = Told::of(&in_pieces(&talk.packets));
    told.flush();
    assert_eq!(told.outcomes(), [Outcome::Ok, Outcome::Ok]);
    assert_eq!(told.finished[0].response.token_events, tokens as u64);
    let stamp = Nanos::new(talk.packets[3].stamp);
    assert!(told.finished[0].response.token_stamps.iter().all(|it| *it == stamp));
    assert_eq!(told.finished[0].segments, 2);
    assert_eq!(told.table.parked_cost(), 0);
}

#[test]
fn a_missing_piece_of_a_large_packet_leaves_no_verdict_and_the_next_request_is_read() {
    let (talk, _) = large();
    let whole = in_pieces(&talk.packets);
    let pieces = whole.iter().filter(|it| it.from_endpoint && it.payload_len > 60_000).count();
    for missing in 0..pieces {
        let mut packets = whole.clone();
        packets.remove(3 + missing);
        let mut told = Told::of(&packets);
        told.flush();
        assert_eq!(told.outcomes(), [Outcome::Unknown, Outcome::Ok], "{missing}");
        assert!(told.table.stats().gaps > 0);
    }
}

#[test]
fn pieces_on_either_side_of_the_wrap_fit_together() {
    let (reference, tokens) = large();
    for back in [1, 4095, 4096, 4097, 30_000] {
        let mut talk = Talk::open_at(9, 0_u32.wrapping_sub(back), 0);
        talk.request(&post(1, "")).response(&reference.packets[3].payload);
        let mut told = Told::of(&in_pieces(&talk.packets));
        let exchange = told.one();
        assert_eq!(exchange.response.token_events, tokens as u64, "{back}");
        assert_eq!(told.table.stats().gaps, 0);
    }
}

/// Both views of `packets`, the second one `lag` packets behind the first.
fn views(packets: &[Packet], lag: usize, interfaces: [u32; 2]) -> Vec<Packet> {
    let view = |(at, packet): (usize, &Packet), ifindex, after: usize| {
        (2 * at + after, Packet { ifindex, ..packet.clone() })
    };
    let mut all: Vec<_> = packets.iter().enumerate().map(|it| view(it, interfaces[0], 0)).collect();
    all.extend(packets.iter().enumerate().map(|it| view(it, interfaces[1], 2 * lag + 1)));
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, packet)| packet).collect()
}

#[test]
fn the_same_bytes_on_two_interfaces_count_once_whichever_comes_first() {
    let packets = talk().packets;
    let mut told = Told::of(&packets);
    let (alone, bytes) = (told.one(), told.table.stats().payload_bytes);
    assert_eq!(bytes, alone.request_bytes + alone.response.bytes);
    for interfaces in [[1, 2], [2, 1]] {
        for lag in 0..4 {
            let mut told = Told::of(&views(&packets, lag, interfaces));
            let exchange = told.one();
            assert_eq!(exchange.response, alone.response, "{interfaces:?} {lag}");
            assert_eq!(exchange.request_end, alone.request_end);
            assert_eq!(exchange.response_retransmits, 0);
            assert_eq!(exchange.segments, alone.segments);
            assert_eq!(told.table.stats().payload_bytes, bytes);
            assert_eq!((told.opened, told.closed), (1, 1));
            assert_eq!(told.table.connections(), 0);
        }
    }
}

#[test]
fn bytes_sent_again_count_once() {
    let mut talk = talk();
    let again: Vec<_> = talk.packets[2..6].to_vec();
    talk.packets.splice(6..6, again);
    let mut told = Told::of(&talk.packets);
    let exchange = told.one();
    assert_eq!((exchange.request_retransmits, exchange.response_retransmits), (1, 3));
    let bytes = exchange.request_bytes + exchange.response.bytes;
    assert_eq!(told.table.stats().payload_bytes, bytes);
}

#[test]
fn what_one_view_lost_the_other_supplies() {
    let packets = talk().packets;
    let alone = Told::of(&packets).one();
    let both = views(&packets, 0, [1, 2]);
    for lost in 0..both.len() {
        let mut packets = both.clone();
        packets.remove(lost);
        let mut told = Told::of(&packets);
        let exchange = told.one();
        assert_eq!(exchange.response, alone.response, "{lost}");
        assert_eq!(Outcome::of(&exchange), Outcome::Ok);
        assert_eq!(told.table.stats().gaps, 0);
    }
}

#[test]
fn addresses_of_either_family_make_connections() {
    let endpoint = "[2001:db8::1]:8000".parse().unwrap();
    let mut table = FlowTable::new([endpoint], FlowLimits::default());
    for packet in &talk().packets {
        let mut segment = packet.segment();
        let peer = "[2001:db8::2]:40000".parse().unwrap();
        (segment.source, segment.destination) =
            if packet.from_endpoint { (endpoint, peer) } else { (peer, endpoint) };
        table.take(&segment);
    }
    let told = table.take_events();
    let finished = told.iter().filter_map(|event| match event {
        FlowEvent::Finished(exchange) => Some((exchange.endpoint, Outcome::of(exchange))),
        _ => None,
    });
    assert_eq!(finished.collect::<Vec<_>>(), [(endpoint, Outcome::Ok)]);
}
