//! Order, repetition, pieces and views.

use super::*;

fn three_parts() -> Talk {
    let mut talk = Talk::open();
    talk.request(&post(1, "hello"));
    talk.response(HEAD).response(&token()).response(&token());
    talk.response(&[done(), LAST_CHUNK.to_vec()].concat());
    talk
}

#[test]
fn instants_are_those_of_the_segments_that_hold_the_bytes() {
    let talk = three_parts();
    let exchange = Told::of(&talk.packets).one();
    let at = |index: usize| ns(talk.packets[index].stamp);
    assert_eq!(exchange.request_first, at(2));
    assert_eq!(exchange.request_end, at(2));
    assert_eq!(exchange.response.first_byte, at(3));
    assert_eq!(exchange.response.first_token, at(4));
    assert_eq!(exchange.response.last_token, at(5));
    assert_eq!(exchange.response.framing_end, at(6));
    assert_eq!(exchange.end, at(6));
    assert_eq!(Outcome::of(&exchange), Outcome::Ok);
    assert_eq!((exchange.segments, exchange.response_retransmits), (5, 0));
    assert_eq!(exchange.trace_id.unwrap().to_string(), "4bf92f3577b34da6a3ce929d0e0e4701");
}

#[test]
fn a_byte_cannot_be_read_before_those_ahead_of_it() {
    let mut talk = three_parts();
    // The first token is overtaken by the second, and sent again much later.
    talk.packets[4].stamp += 50_000;
    talk.packets.swap(4, 5);
    let exchange = Told::of(&talk.packets).one();
    let late = ns(talk.packets[5].stamp);
    assert_eq!(exchange.response.first_token, late);
    assert_eq!(exchange.response.last_token, late);
    assert_eq!(exchange.response.framing_end, late);
    assert_eq!(Outcome::of(&exchange), Outcome::Ok);
}

#[test]
fn sequence_numbers_wrap_in_both_directions() {
    for distance in 0..40_u32 {
        let mut talk =
            Talk::open_at(0_u32.wrapping_sub(distance), 20_u32.wrapping_sub(distance), 0);
        talk.request(&post(1, "hello"));
        stream(3).chunks(7).for_each(|part| {
            talk.response(part);
        });
        talk.packets.swap(3, 4);
        let exchange = Told::of(&talk.packets).one();
        assert_eq!(Outcome::of(&exchange), Outcome::Ok, "{distance}");
        assert_eq!(exchange.response.token_events, 3);
    }
}

#[test]
fn repeated_bytes_are_dropped_and_counted_once_per_segment() {
    let mut talk = three_parts();
    let mut again = talk.packets[4].clone();
    again.stamp = talk.packets[5].stamp + 1;
    talk.packets.insert(6, again);
    let mut told = Told::of(&talk.packets);
    let exchange = told.one();
    assert_eq!((exchange.segments, exchange.response_retransmits), (6, 1));
    assert_eq!(exchange.response.token_events, 2);
    assert_eq!(told.table.stats().retransmits, 1);
}

#[test]
fn another_view_of_the_same_bytes_is_no_retransmission() {
    let mut talk = three_parts();
    let views: Vec<_> = talk
        .packets
        .drain(..)
        .flat_map(|packet| {
            [packet.clone(), Packet { ifindex: 2, stamp: packet.stamp + 1, ..packet }]
        })
        .collect();
    let mut told = Told::of(&views);
    let exchange = told.one();
    assert_eq!(exchange.response_retransmits, 0);
    assert_eq!(exchange.response.first_token, ns(views[8].stamp));
    assert_eq!(told.table.stats().second_views, 5);
    assert_eq!(told.table.connections(), 1);
}

#[test]
fn a_repetition_with_other_bytes_leaves_no_verdict() {
    for parked in [false, true] {
        let mut talk = three_parts();
        let mut other = talk.packets[4].clone();
        other.payload[30] ^= 1;
        if parked {
            // Both copies wait behind the head.
            let head = talk.packets.remove(3);
            talk.packets.insert(4, other);
            talk.packets.insert(5, head);
        } else {
            talk.packets.insert(5, other);
        }
        let mut told = Told::of(&talk.packets);
        let exchange = told.one();
        assert_eq!(Outcome::of(&exchange), Outcome::Unknown, "{parked}");
        assert_eq!(told.table.stats().conflicts, 1);
    }
}

#[test]
fn a_keep_alive_probe_contradicts_nothing() {
    let mut talk = three_parts();
    let probe = Packet::new(talk.stamp, false, talk.client.wrapping_sub(1), talk.server, b"\0");
    talk.packets.push(probe);
    let exchange = Told::of(&talk.packets).one();
    assert_eq!(Outcome::of(&exchange), Outcome::Ok);
}

#[test]
fn pieces_of_one_segment_are_one_segment() {
    let mut talk = Talk::open();
    talk.request(&post(1, &"x".repeat(9000)));
    talk.response(&stream(20));
    let pieces: Vec<_> = talk
        .packets
        .iter()
        .flat_map(|it| if it.payload.is_empty() { vec![it.clone()] } else { it.pieces(64) })
        .collect();
    let exchange = Told::of(&pieces).one();
    assert_eq!((exchange.segments, exchange.response_retransmits), (2, 0));
    assert_eq!(exchange.response.token_events, 20);
    assert_eq!(exchange.request_end, exchange.request_first);
    assert_eq!(Outcome::of(&exchange), Outcome::Ok);
}

#[test]
fn pieces_of_packets_on_two_cpus_may_interleave() {
    let mut talk = Talk::open();
    talk.request(&post(1, ""));
    let body = stream(20);
    let (first, second) = body.split_at(700);
    talk.response(first).response(second);
    talk.packets[4].cpu = 1;
    let (one, two) = (talk.packets[3].pieces(100), talk.packets[4].pieces(100));
    let mut packets = talk.packets[..3].to_vec();
    for index in 0..one.len().max(two.len()) {
        packets.extend(one.get(index).cloned());
        packets.extend(two.get(index).cloned());
    }
    let mut told = Told::of(&packets);
    let exchange = told.one();
    assert_eq!(Outcome::of(&exchange), Outcome::Ok);
    assert_eq!(told.table.stats().gaps, 0);
}
