//! Repetitions and round trips, so that a slow request can be put down to the network or not.

use super::*;
use crate::capture::Retransmit;

fn answered() -> Talk {
    let mut talk = Talk::open();
    talk.request(&post(1, "hello")).response(HEAD).response(&token());
    talk.response(&[done(), LAST_CHUNK.to_vec()].concat());
    talk
}

/// `talk` with packet `at` sent once more, 10 ns after itself.
fn with_again(mut talk: Talk, at: usize) -> Talk {
    let mut again = talk.packets[at].clone();
    again.stamp += 10;
    talk.packets.insert(at + 1, again);
    talk
}

#[test]
fn repeated_segments_are_counted_for_their_direction() {
    for (at, expected) in [(2, (1, 0)), (3, (0, 1)), (4, (0, 1)), (5, (0, 1))] {
        let exchange = Told::of(&with_again(answered(), at).packets).one();
        let counted = (exchange.request_retransmits, exchange.response_retransmits);
        assert_eq!(counted, expected, "{at}");
        assert_eq!(exchange.segments, 5);
        assert_eq!(Outcome::of(&exchange), Outcome::SingleToken);
    }
}

#[test]
fn a_request_sent_again_is_told_by_its_last_repetition_before_the_answer() {
    let mut talk = with_again(answered(), 2);
    let resent = ns(talk.packets[3].stamp);
    let mut late = talk.packets[3].clone();
    late.stamp = talk.packets[4].stamp + 10;
    talk.packets.insert(5, late);
    let exchange = Told::of(&talk.packets).one();
    assert_eq!((exchange.request_resent, exchange.request_retransmits), (resent, 2));
    assert_eq!(Told::of(&answered().packets).one().request_resent, None);
}

#[test]
fn what_the_kernel_reports_is_counted_for_the_request_in_flight() {
    let talk = answered();
    let report = |from_endpoint: bool| Retransmit {
        stamp: Nanos::new(1),
        source: if from_endpoint { endpoint() } else { peer() },
        destination: if from_endpoint { peer() } else { endpoint() },
        from_endpoint,
    };
    let mut told = Told::of(&talk.packets[..3]);
    told.table.retransmit(&report(false));
    told.take(&talk.packets[3..5]);
    told.table.retransmit(&report(true));
    told.table.retransmit(&report(true));
    told.take(&talk.packets[5..]);
    let mut stranger = report(true);
    stranger.destination.set_port(9);
    told.table.retransmit(&stranger);
    let exchange = told.one();
    assert_eq!(exchange.request_socket_retransmits, 1);
    assert_eq!(exchange.response_socket_retransmits, 2);
    assert_eq!((exchange.request_retransmits, exchange.response_retransmits), (0, 0));
}

#[test]
fn the_handshake_shows_the_way_to_either_side() {
    let mut talk = answered();
    for (at, stamp) in [100, 350, 1350, 9000, 9001, 9002].into_iter().enumerate() {
        talk.packets[at].stamp = stamp;
    }
    let exchange = Told::of(&talk.packets).one();
    assert_eq!(exchange.handshake_rtt_ns, Some(250));
    assert_eq!(exchange.client_rtt_upper_bound_ns, Some(1000));
}

#[test]
fn a_repeated_syn_is_no_new_connection_and_gives_no_round_trip() {
    for (at, client_known) in [(0, true), (1, false)] {
        let mut told = Told::of(&with_again(answered(), at).packets);
        let exchange = told.one();
        assert_eq!(exchange.handshake_rtt_ns, None, "{at}");
        assert_eq!(exchange.client_rtt_upper_bound_ns.is_some(), client_known, "{at}");
        assert_eq!(exchange.connection, ConnectionId(0));
        assert_eq!(told.opened, 1);
    }
}

#[test]
fn another_view_of_the_handshake_is_no_repetition() {
    let views: Vec<_> = answered()
        .packets
        .into_iter()
        .flat_map(|it| [it.clone(), Packet { ifindex: 2, stamp: it.stamp + 400, ..it }])
        .collect();
    let exchange = Told::of(&views).one();
    assert_eq!(exchange.handshake_rtt_ns, Some(1000));
}

#[test]
fn a_connection_older_than_the_agent_has_no_round_trip() {
    let mut talk = Talk::silent(1000, 5000, 0);
    talk.request(&post(1, "")).response(&stream(1));
    let exchange = Told::of(&talk.packets).one();
    assert!(exchange.adopted);
    assert_eq!((exchange.handshake_rtt_ns, exchange.client_rtt_upper_bound_ns), (None, None));
}
