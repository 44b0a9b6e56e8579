//! Older connections, and the kernel's list as second witness.

use super::*;

fn tick(inflight: &mut Inflight, dump: &NamespaceSockets, now: u64) -> GaugeRow {
    let before = inflight.marks();
    inflight.reconcile(&before, std::slice::from_ref(dump), 0, ns(now));
    inflight.gauges()[0].clone()
}

/// Old and new states.
type Transitions<'a> = &'a [(u8, u8)];

#[test]
fn every_order_of_attachment_dump_and_transition_counts_a_connection_once() {
    let (enter, half, leave) = ((3, 1), (1, 8), (8, 7));
    // Transitions since the attachment, whether the dump holds the connection, and what is left.
    let cases: [(Transitions<'_>, bool, u64); 9] = [
        (&[], true, 1),
        (&[], false, 0),
        (&[enter], true, 1),
        (&[enter], false, 1),
        (&[half], true, 1),
        (&[half, leave], true, 0),
        (&[half, leave], false, 0),
        (&[enter, half, leave], false, 0),
        (&[half, leave, enter], true, 1),
    ];
    for (transitions, in_dump, left) in cases {
        let mut inflight = inflight();
        for (index, (old, new)) in transitions.iter().enumerate() {
            inflight.socket(&change(10 + index as u64, 1, *old, *new));
        }
        inflight.adopt(&[listed(1, in_dump.then_some(1))]);
        let gauge = &inflight.gauges()[0];
        assert_eq!(gauge.connections, Some(left), "{transitions:?} {in_dump}");
        assert_eq!(gauge.source, ConnectionSource::Tracepoint);
    }
}

#[test]
fn an_adopted_connection_counts_in_a_window_until_it_ends() {
    let mut inflight = inflight();
    inflight.adopt(&[listed(1, [1, 2])]);
    inflight.open(1, ns(1000));
    inflight.socket(&change(1050, 1, 1, 7));
    inflight.close(1, ns(1100));
    let row = json(&inflight.rows(1)[0]);
    assert_eq!((&row["connections_mean"], &row["connections_peak"]), (&1.5.into(), &2.into()));
    assert_eq!(row["certainty"], "exact");
    assert_eq!(inflight.gauges()[0].agreement.adopted, 2);
}

#[test]
fn a_drift_is_told_at_once_and_set_right_when_it_stays_in_quiet() {
    let mut inflight = inflight();
    inflight.socket(&change(10, 1, 3, 1));
    let dump = listed(1, [1, 2, 3]);
    let first = tick(&mut inflight, &dump, 100);
    assert_eq!((first.agreement.drift, first.connections), (Some(2), Some(1)));
    assert_eq!(inflight.corrections(), 0);
    let second = tick(&mut inflight, &dump, 200);
    assert_eq!((second.agreement.drift, second.connections), (Some(2), Some(3)));
    assert_eq!(second.agreement.reconciled_ns, Some(ns(200)));
    let third = tick(&mut inflight, &dump, 300);
    assert_eq!((third.agreement.drift, third.agreement.reconciliations), (Some(0), 3));
    assert_eq!(inflight.corrections(), 1);
    let fewer = listed(1, [1]);
    assert_eq!(tick(&mut inflight, &fewer, 400).agreement.drift, Some(-2));
    assert_eq!(tick(&mut inflight, &fewer, 500).connections, Some(1));
}

#[test]
fn a_transition_between_two_findings_keeps_a_drift_from_being_booked() {
    let mut inflight = inflight();
    inflight.socket(&change(10, 1, 3, 1));
    let dump = listed(1, [1, 2]);
    tick(&mut inflight, &dump, 100);
    inflight.socket(&change(150, 1, 1, 8));
    assert_eq!(tick(&mut inflight, &dump, 200).connections, Some(1));
    assert_eq!(tick(&mut inflight, &dump, 300).connections, Some(2));
}

#[test]
fn everything_between_the_counts_before_and_after_a_dump_agrees() {
    let mut inflight = inflight();
    inflight.socket(&change(10, 1, 3, 1));
    for (listed_then, drift) in [(0, -1), (1, 0), (2, 0), (3, 0), (4, 1)] {
        let mut inflight = super::inflight();
        inflight.socket(&change(10, 1, 3, 1));
        let before = inflight.marks();
        inflight.socket(&change(20, 2, 3, 1));
        inflight.socket(&change(21, 3, 3, 1));
        inflight.reconcile(&before, &[listed(1, 0..listed_then)], 0, ns(30));
        assert_eq!(inflight.gauges()[0].agreement.drift, Some(drift), "{listed_then}");
    }
}

#[test]
fn an_address_in_two_namespaces_is_unknown_for_good() {
    let mut inflight = inflight();
    inflight.adopt(&[listed(1, [1]), listed(2, [])]);
    inflight.open(1, ns(0));
    inflight.close(1, ns(100));
    let row = json(&inflight.rows(1)[0]);
    assert_eq!((&row["source"], &row["connections_mean"]), (&"unknown".into(), &().into()));
    assert_eq!(row["connections_peak"], serde_json::Value::Null);
    let gauge = tick(&mut inflight, &listed(1, [1]), 200);
    assert_eq!((gauge.connections, gauge.certainty), (None, Certainty::Unknown));
    assert_eq!(gauge.agreement.drift, None);
}

#[test]
fn without_a_list_that_holds_the_endpoint_nothing_is_reconciled() {
    let mut inflight = inflight();
    inflight.socket(&change(10, 1, 3, 1));
    let elsewhere = NamespaceSockets {
        namespace: NamespaceId(1),
        listening: [].into(),
        connections: Vec::new(),
    };
    for now in [100, 200, 300] {
        let gauge = tick(&mut inflight, &elsewhere, now);
        assert_eq!((gauge.agreement.drift, gauge.connections), (None, Some(1)));
    }
    assert_eq!(inflight.corrections(), 0);
}

#[test]
fn after_lost_records_a_count_is_set_to_the_kernels_own() {
    let mut inflight = inflight();
    inflight.socket(&change(10, 1, 3, 1));
    let address = endpoint().address;
    assert_eq!(inflight.resynchronise(&[(address, 1)], ns(20)), 0);
    assert_eq!(inflight.resynchronise(&[(address, 4)], ns(30)), 1);
    assert_eq!(inflight.gauges()[0].connections, Some(4));
    assert_eq!(inflight.resynchronise(&[(address, 4)], ns(40)), 0);
    assert_eq!(inflight.resynchronisations(), 1);
}
