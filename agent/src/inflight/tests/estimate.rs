//! Connections whose socket is on another host.

use super::*;
use crate::testing::{Packet, RST, SYN};

fn take(inflight: &mut Inflight, packets: &[Packet]) -> Option<u64> {
    packets.iter().for_each(|packet| inflight.segment(&packet.segment()));
    inflight.gauges()[0].connections
}

fn of(number: u16, packets: &[Packet]) -> Vec<Packet> {
    packets.iter().map(|packet| Packet { peer: client(number), ..packet.clone() }).collect()
}

fn syn(stamp: u64, seq: u32) -> Packet {
    Packet { flags: SYN, ..Packet::new(stamp, false, seq, 0, b"") }
}

#[test]
fn a_connection_counts_from_the_answer_to_its_syn_until_both_sides_have_ended() {
    let mut inflight = inflight();
    let mut talk = Talk::open();
    assert_eq!(take(&mut inflight, &talk.packets[..1]), Some(0));
    assert_eq!(take(&mut inflight, &talk.packets), Some(1));
    talk.request(b"x").response(b"y");
    assert_eq!(take(&mut inflight, &talk.packets), Some(1));
    talk.client_fin();
    assert_eq!(take(&mut inflight, &talk.packets), Some(1));
    talk.endpoint_fin();
    assert_eq!(take(&mut inflight, &talk.packets), Some(0));
    // Everything again, as another interface shows it.
    assert_eq!(take(&mut inflight, &talk.packets), Some(0));
}

#[test]
fn refused_and_retried_syns_are_no_connections() {
    let mut inflight = inflight();
    let refusal = Packet::new(30, true, 0, 11, b"").with_flags(RST);
    let tries = [syn(10, 10), syn(20, 10), refusal.clone(), syn(40, 99), refusal];
    assert_eq!(take(&mut inflight, &tries), Some(0));
}

#[test]
fn a_reset_ends_a_connection_and_its_addresses_can_be_used_again() {
    let mut inflight = inflight();
    let mut talk = Talk::open_at(1000, 5000, 10);
    talk.reset(true);
    assert_eq!(take(&mut inflight, &talk.packets), Some(0));
    assert_eq!(take(&mut inflight, &Talk::open_at(9000, 70, 50_000).packets), Some(1));
    // The end of this one was not seen.
    assert_eq!(take(&mut inflight, &Talk::open_at(19_000, 70, 90_000).packets), Some(1));
}

#[test]
fn silence_ends_a_connection_whose_peer_vanished() {
    let mut inflight = inflight();
    inflight.set_idle_expiry(1_000_000_000);
    inflight.open(1, ns(0));
    let talk = Talk::open_at(1000, 5000, 1000);
    let last = talk.packets.last().unwrap().stamp;
    assert_eq!(take(&mut inflight, &talk.packets), Some(1));
    inflight.settle(ns(last + 999_999_999));
    assert_eq!(inflight.gauges()[0].connections, Some(1));
    inflight.settle(ns(last + 5_000_000_000));
    let gauge = inflight.gauges()[0].clone();
    assert_eq!((gauge.connections, gauge.expired), (Some(0), 1));
    assert_eq!(gauge.source, ConnectionSource::Packets);
}

#[test]
fn responses_that_take_another_way_are_told_and_the_clients_fin_is_the_end() {
    let mut inflight = inflight();
    let mut talk = Talk::silent(1000, 5000, 10);
    talk.packets.push(syn(1, 999));
    assert_eq!(take(&mut inflight, &talk.packets), Some(0));
    assert!(!inflight.gauges()[0].responses_unobserved);
    talk.request(b"x");
    assert_eq!(take(&mut inflight, &talk.packets), Some(1));
    assert!(inflight.gauges()[0].responses_unobserved);
    talk.client_fin();
    assert_eq!(take(&mut inflight, &talk.packets), Some(0));
    assert_eq!(take(&mut inflight, &of(2, &Talk::open().packets)), Some(1));
    assert!(!inflight.gauges()[0].responses_unobserved);
}

#[test]
fn a_connection_from_before_the_agent_counts_from_its_first_payload() {
    let mut inflight = inflight();
    let mut talk = Talk::silent(1000, 5000, 10);
    talk.client_fin();
    assert_eq!(take(&mut inflight, &talk.packets), Some(0));
    let mut talk = Talk::silent(1000, 5000, 10);
    talk.response(b"x");
    assert_eq!(take(&mut inflight, &of(3, &talk.packets)), Some(1));
}
