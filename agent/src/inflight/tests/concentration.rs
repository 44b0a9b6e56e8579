//! Spread of requests over the backends of a role.

use super::*;

fn fleet() -> Inflight {
    let endpoints = [
        "vip=10.0.0.9:80",
        "prefill=10.0.0.1:80",
        "prefill=10.0.0.2:80",
        "decode=10.0.0.3:80",
        "decode=10.0.0.4:80",
    ];
    Inflight::new(&endpoints.map(|text| text.parse().unwrap()), 100)
}

fn requests(inflight: &mut Inflight, address: &str, count: usize, start: u64, end: u64) {
    let endpoint = address.parse().unwrap();
    for _ in 0..count {
        inflight.flow(&FlowEvent::RequestStarted { endpoint, stamp: ns(start) });
        inflight.flow(&FlowEvent::RequestEnded { endpoint, stamp: ns(end) });
    }
}

#[test]
fn the_headline_is_largest_over_mean_of_time_weighted_means_per_role() {
    let mut inflight = fleet();
    inflight.open(1, ns(0));
    requests(&mut inflight, "10.0.0.1:80", 3, 0, 200);
    requests(&mut inflight, "10.0.0.2:80", 2, 100, 200);
    requests(&mut inflight, "10.0.0.9:80", 50, 0, 400);
    inflight.close(1, ns(400));
    let told = json(&inflight.concentration(1, "w1".to_owned()));
    assert_eq!((&told["schema"], &told["end_ns"]), (&CONCENTRATION_SCHEMA.into(), &400.into()));
    let roles = told["roles"].as_array().unwrap();
    assert_eq!(roles.len(), 2);
    let prefill = &roles[0];
    assert_eq!((&prefill["role"], &prefill["backends"]), (&"prefill".into(), &2.into()));
    assert_eq!(prefill["endpoints"][0]["requests_mean"], 1.5);
    assert_eq!(prefill["endpoints"][1]["requests_mean"], 0.5);
    assert_eq!(prefill["ratio"], 1.5);
    let decode = &roles[1];
    assert_eq!((&decode["ratio"], &decode["idle"]), (&().into(), &true.into()));
}

#[test]
fn ratios_of_single_moments_count_only_where_the_mean_is_at_least_one() {
    let mut inflight = fleet();
    inflight.open(1, ns(0));
    requests(&mut inflight, "10.0.0.1:80", 4, 0, 150);
    requests(&mut inflight, "10.0.0.1:80", 3, 150, 250);
    requests(&mut inflight, "10.0.0.2:80", 3, 150, 250);
    requests(&mut inflight, "10.0.0.1:80", 1, 250, 350);
    inflight.close(1, ns(400));
    let told = json(&inflight.concentration(1, "w1".to_owned()));
    let ticks = &told["roles"][0]["ticks"];
    assert_eq!(
        (&ticks["counted"], &ticks["below_one"], &ticks["idle"]),
        (&2.into(), &1.into(), &1.into())
    );
    assert_eq!(
        (&ticks["min"], &ticks["p50"], &ticks["p99"]),
        (&1.0.into(), &1.0.into(), &2.0.into())
    );
}

#[test]
fn the_spread_now_keeps_roles_apart_and_leaves_virtual_addresses_out() {
    let mut inflight = fleet();
    for (address, count) in [("10.0.0.1:80", 4), ("10.0.0.3:80", 2), ("10.0.0.4:80", 2)] {
        let endpoint = address.parse().unwrap();
        for _ in 0..count {
            inflight.flow(&FlowEvent::RequestStarted { endpoint, stamp: ns(1) });
        }
    }
    let spread = json(&inflight.spread());
    assert_eq!((&spread[0]["role"], &spread[0]["ratio"]), (&"prefill".into(), &2.0.into()));
    assert_eq!((&spread[1]["role"], &spread[1]["ratio"]), (&"decode".into(), &1.0.into()));
    assert_eq!(spread.as_array().unwrap().len(), 2);
}

#[test]
fn nothing_in_flight_is_idle_and_no_number() {
    assert_eq!(Spread::of(&[0.0, 0.0]).ratio, None);
    assert!(Spread::of(&[]).idle);
    assert_eq!(Spread::of(&[2.0, 2.0]).ratio, Some(1.0));
    assert_eq!(Spread::of(&[0.0, 0.0, 3.0]).ratio, Some(3.0));
}
