use serde_json::json;

use super::*;
use crate::rundir::{Counter, CounterDelta, Expected, SeriesFamily};

fn vip() -> SocketAddr {
    "127.0.0.1:8001".parse().unwrap()
}

fn rules() -> serde_json::Value {
    let service =
        json!({"externalIP": "127.0.0.1", "port": 8001, "sel": 4, "mode": 4, "kvExactMode": 3});
    let endpoints = json!([{"endpointIP": "127.0.0.1", "targetPort": 9001}]);
    json!({"lbAttr": [{"serviceArguments": {"externalIP": "127.0.0.1", "port": 1}},
                      {"serviceArguments": service, "endpoints": endpoints}]})
}

#[test]
fn a_rule_is_found_by_its_vip_and_compared_key_by_key() {
    let readback = parse_rules(&rules(), vip());
    assert_eq!((readback.sel, readback.mode, readback.kv_exact_mode), (Some(4), Some(4), Some(3)));
    assert_eq!(readback.endpoints, ["127.0.0.1:9001"]);
    let expected = Expected { sel: Some(4), kv_exact_mode: Some(3), ..Expected::default() };
    assert!(mismatches(&expected, &readback, &readback).is_empty());
    let other = Expected { sel: Some(0), ..Expected::default() };
    let words = mismatches(&other, &readback, &readback);
    assert_eq!(words[0], "sel is 4 before the repetition, expected 0");
    let absent = parse_rules(&rules(), "127.0.0.1:2".parse().unwrap());
    assert!(!absent.found && mismatches(&expected, &absent, &absent)[0].contains("no rule for"));
}

#[test]
fn the_newest_mode_line_counts_and_may_come_late() {
    let log =
        "1 [KV_INV] LB mode = \"soft\" (X)\n2 other\n3 [KV_INV] LB mode = \"hard\" (X)\n4 end\n";
    assert_eq!(mode_line(log).unwrap().0, "hard");
    assert_eq!(mode_line("[KV_INV] totalLoad=3 mode=hard"), None);
    let expected = Expected { lb_mode: Some("hard".into()), ..Expected::default() };
    let named = Readback { lb_mode: Some("hard".into()), ..Readback::default() };
    assert!(mismatches(&expected, &Readback::default(), &named).is_empty());
    let silent = mismatches(&expected, &named, &Readback::default());
    assert_eq!(silent, ["LB mode in the log is not named, expected hard"]);
}

#[test]
fn counters_rise_appear_reset_and_are_never_zero_when_absent() {
    let page = |text| parse_metrics(text);
    let before =
        page("# TYPE h counter\nloxilb_pd_kv_tier15_hits_total{ep_idx=\"0\"} 5\nother 1\n");
    let after = page(
        "loxilb_pd_kv_tier15_hits_total{ep_idx=\"0\"} 9\nloxilb_pd_kv_tier15_hits_total{ep_idx=\"1\"} 2 1700\nloxilb_pd_kv_tier15_hits_totally 50\n",
    );
    let counter = Counter { before: &before, after: &after };
    assert_eq!(counter.delta(SeriesFamily::HITS), CounterDelta::Value(6.0));
    assert_eq!(counter.delta(SeriesFamily::MISSES), CounterDelta::Unknown);
    let reset = page("loxilb_pd_kv_tier15_hits_total{ep_idx=\"0\"} 3\n");
    let counter = Counter { before: &before, after: &reset };
    assert_eq!(counter.delta(SeriesFamily::HITS), CounterDelta::Value(3.0));
    let off = page("\"Prometheus option is disabled.\"");
    assert!(matches!(off, Scrape::Unavailable { .. }));
    let counter = Counter { before: &off, after: &reset };
    assert_eq!(counter.delta(SeriesFamily::HITS), CounterDelta::Unknown);
}
