//! Levels of an endpoint, in model time.

mod concentration;
mod estimate;
mod property;
mod reconcile;

use super::*;
use crate::sockdiag::{ConnectionSocket, NamespaceId};
use crate::testing::Talk;

fn ns(at: u64) -> Nanos {
    Nanos::new(at)
}

fn endpoint() -> Endpoint {
    "backend=10.0.0.1:8000".parse().unwrap()
}

fn inflight() -> Inflight {
    Inflight::new(&[endpoint()], 100)
}

fn request(inflight: &mut Inflight, start: u64, end: u64) {
    let endpoint = endpoint().address;
    inflight.flow(&FlowEvent::RequestStarted { endpoint, stamp: ns(start) });
    inflight.flow(&FlowEvent::RequestEnded { endpoint, stamp: ns(end) });
}

fn client(number: u16) -> SocketAddr {
    SocketAddr::new("10.0.0.2".parse().unwrap(), 40_000 + number)
}

/// A transition of the connection with client `number`.
fn change(stamp: u64, number: u16, old_state: u8, new_state: u8) -> SocketTransition {
    SocketTransition {
        stamp: ns(stamp),
        local: endpoint().address,
        remote: client(number),
        old_state,
        new_state,
        at_endpoint: true,
    }
}

/// What a namespace with a listener lists, with a connection of each client.
fn listed(namespace: u64, clients: impl IntoIterator<Item = u16>) -> NamespaceSockets {
    let socket = |number| ConnectionSocket {
        local: endpoint().address,
        remote: client(number),
        state: 1,
        cookie: number.into(),
        info: None,
    };
    NamespaceSockets {
        namespace: NamespaceId(namespace),
        listening: [endpoint().address].into(),
        connections: clients.into_iter().map(socket).collect(),
    }
}

fn json(row: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(row).unwrap()
}

#[test]
fn means_are_weighted_by_time_and_peaks_are_kept_however_short() {
    let mut inflight = inflight();
    inflight.open(1, ns(1000));
    request(&mut inflight, 1010, 1060);
    request(&mut inflight, 1030, 1130);
    request(&mut inflight, 1150, 1150);
    inflight.close(1, ns(1250));
    let rows: Vec<_> = inflight.rows(1).iter().map(json).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0]["requests_mean"], (50.0 + 70.0) / 100.0);
    assert_eq!(rows[0]["requests_peak"], 2);
    assert_eq!(rows[1]["requests_mean"], 0.3);
    assert_eq!(rows[1]["requests_peak"], 1);
    assert_eq!((&rows[2]["start_ns"], &rows[2]["end_ns"]), (&1200.into(), &1250.into()));
    assert_eq!(rows[2]["requests_mean"], 0.0);
    assert_eq!(rows[0]["source"], "packets");
}

#[test]
fn what_happens_while_a_window_waits_for_its_requests_is_not_in_it() {
    let mut inflight = inflight();
    inflight.open(1, ns(1000));
    request(&mut inflight, 1010, 90_000);
    inflight.settle(ns(2_000_000_000));
    inflight.open(2, ns(2_000_000_000));
    inflight.bound(2, ns(2_000_000_150));
    request(&mut inflight, 2_000_000_050, 2_000_000_120);
    request(&mut inflight, 2_000_000_200, 2_000_000_900);
    inflight.settle(ns(9_000_000_000));
    inflight.close(2, ns(2_000_000_150));
    let rows: Vec<_> = inflight.rows(2).iter().map(json).collect();
    let ends: Vec<_> = rows.iter().map(|row| row["end_ns"].as_u64().unwrap()).collect();
    assert_eq!(ends, [2_000_000_100, 2_000_000_150]);
    assert_eq!(rows[0]["requests_mean"], 0.5);
    assert_eq!(rows[1]["requests_mean"], 0.4);
    assert_eq!(rows[1]["requests_peak"], 1);
}

#[test]
fn a_level_from_before_the_window_counts_in_it() {
    let mut inflight = inflight();
    inflight.socket(&change(10, 1, 3, 1));
    inflight.open(7, ns(1000));
    inflight.socket(&change(900, 2, 3, 1));
    inflight.close(7, ns(1100));
    let row = json(&inflight.rows(7)[0]);
    assert_eq!(row["connections_mean"], 2.0);
    assert_eq!(row["connections_peak"], 2);
}

#[test]
fn one_transition_makes_the_tracepoint_the_source_of_its_endpoint() {
    let mut inflight = inflight();
    let talk = Talk::open();
    talk.packets.iter().for_each(|packet| inflight.segment(&packet.segment()));
    let gauge = inflight.gauges()[0].clone();
    assert_eq!((gauge.source, gauge.connections), (ConnectionSource::Packets, Some(1)));
    assert_eq!((gauge.certainty, gauge.evidence), (Certainty::Estimated, Evidence::None));
    inflight.socket(&change(10, 1, 3, 1));
    inflight.socket(&change(11, 2, 3, 1));
    inflight.socket(&change(12, 2, 1, 8));
    let gauge = inflight.gauges()[0].clone();
    assert_eq!((gauge.source, gauge.connections), (ConnectionSource::Tracepoint, Some(2)));
    assert_eq!((gauge.certainty, gauge.evidence), (Certainty::Exact, Evidence::Transition));
    inflight.socket(&change(13, 2, 8, 9));
    inflight.socket(&change(14, 2, 9, 7));
    assert_eq!(inflight.gauges()[0].connections, Some(1));
    inflight.socket(&SocketTransition { at_endpoint: false, ..change(15, 1, 1, 7) });
    assert_eq!(inflight.gauges()[0].connections, Some(1));
}

#[test]
fn connections_older_than_the_agent_never_make_a_level_negative() {
    let mut inflight = inflight();
    inflight.open(1, ns(0));
    inflight.socket(&change(10, 1, 1, 7));
    inflight.socket(&change(20, 2, 3, 1));
    inflight.close(1, ns(100));
    assert_eq!(inflight.gauges()[0].connections, Some(1));
    assert_eq!(json(&inflight.rows(1)[0])["connections_mean"], 0.8);
}

#[test]
fn an_open_window_has_intervals_for_endpoints_at_which_nothing_changes() {
    let mut inflight = inflight();
    inflight.open(1, ns(0));
    inflight.settle(ns(SETTLE + 250));
    let rows = inflight.rows(1);
    assert_eq!(rows.len(), 2);
    assert_eq!(json(&rows[1])["end_ns"], 200);
}

#[test]
fn late_changes_are_booked_at_the_settled_instant() {
    let mut inflight = inflight();
    inflight.open(1, ns(0));
    inflight.settle(ns(SETTLE + 150));
    request(&mut inflight, 20, 180);
    inflight.close(1, ns(200));
    let rows: Vec<_> = inflight.rows(1).iter().map(json).collect();
    assert_eq!(rows[0]["requests_mean"], 0.0);
    assert_eq!(rows[1]["requests_mean"], 0.3);
}

#[test]
fn every_state_of_the_kernel_follows_the_gauge_rule() {
    // A client and a server side, each from its first state to CLOSE (7).
    for path in [&[7, 2, 1, 4, 5, 7][..], &[3, 1, 8, 9, 7], &[3, 1, 4, 11, 6, 7], &[7, 2, 7]] {
        let total: i64 = path.windows(2).filter_map(|pair| gauge_change(pair[0], pair[1])).sum();
        assert_eq!(total, 0, "{path:?}");
    }
    assert_eq!(gauge_change(3, 1), Some(1));
    assert_eq!(gauge_change(1, 4), None);
}
