use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;

use super::{Arrivals, Plan, Schedule, ScheduleError, build, burstiness};
use crate::records::{ScheduleRecord, schedule_lines, schedule_sha256};
use crate::trace::{LoadOptions, Trace, parse};

fn trace(times_ms: &[u64]) -> Trace {
    let text: Vec<String> = times_ms
        .iter()
        .map(|time| format!(r#"{{"timestamp_ms": {time}, "prompt": "p", "max_tokens": 2}}"#))
        .collect();
    parse(text.join("\n").as_bytes(), Path::new("t"), &LoadOptions::default()).unwrap()
}

fn plan(arrivals: Arrivals) -> Plan<'static> {
    Plan { rate_rps: 10.0, arrivals, requests: None, seed: 7, repetition: 1, arm: "rr" }
}

const TRACE: Arrivals = Arrivals::Trace { jitter_ms: 0 };

fn offsets(schedule: &Schedule) -> Vec<u64> {
    schedule.requests().iter().map(|request| request.offset_ns).collect()
}

fn sha256(schedule: &Schedule) -> String {
    schedule_sha256(schedule.requests().iter().map(ScheduleRecord::from)).unwrap()
}

#[test]
fn dilation_keeps_proportions_and_bursts_and_hits_the_rate() {
    let schedule = build(&trace(&[1000, 1000, 4000, 7000]), &plan(TRACE)).unwrap();
    // 4 requests at 10/s: a window of 400 ms, of which the 3 gaps get 300 ms.
    assert_eq!(offsets(&schedule), [0, 0, 150_000_000, 300_000_000]);
    assert_eq!(schedule.length_ns(), 400_000_000);
}

#[test]
fn constant_gaps_are_equal() {
    let schedule = build(&trace(&[0, 0, 0]), &plan(Arrivals::Constant)).unwrap();
    assert_eq!(offsets(&schedule), [0, 100_000_000, 200_000_000]);
    assert_eq!(schedule.burstiness(), Some(0.0));
}

#[test]
fn arms_share_arrivals_and_hash_but_no_trace_id() {
    let trace = trace(&(0..50).collect::<Vec<_>>());
    let a = build(&trace, &plan(Arrivals::Poisson)).unwrap();
    let b = build(&trace, &Plan { arm: "cache", ..plan(Arrivals::Poisson) }).unwrap();
    assert_eq!(sha256(&a), sha256(&b));
    assert_ne!(schedule_lines(&a).unwrap(), schedule_lines(&b).unwrap());
    let ids = |schedule: &Schedule| -> BTreeSet<_> {
        schedule.requests().iter().map(|request| request.trace_id).collect()
    };
    assert!(ids(&a).is_disjoint(&ids(&b)));
}

#[test]
fn repetition_i_uses_seed_plus_i() {
    let trace = trace(&(0..50).collect::<Vec<_>>());
    let with = |seed, repetition| {
        let plan = Plan { seed, repetition, ..plan(Arrivals::Poisson) };
        offsets(&build(&trace, &plan).unwrap())
    };
    assert_eq!(with(7, 2), with(8, 1));
    assert_ne!(with(7, 1), with(7, 2));
}

#[test]
fn the_hash_is_of_the_lines_without_trace_ids() {
    let schedule = build(&trace(&[0]), &plan(TRACE)).unwrap();

    // By sha256sum over {"schema":"goodput.schedule/1","index":0,"row":0,"planned_offset_ns":0,
    // "input_tokens":null,"output_tokens":2} on one line and its line end.
    assert_eq!(
        sha256(&schedule),
        "37822e5fe0a600afd4d0727b67b00177f1ccbfbce2cc0580b7ae92428fe89c0c"
    );
}

#[test]
fn jitter_loosens_ticks_within_its_bound() {
    let trace = trace(&[vec![0; 50], vec![3000; 50]].concat());
    let rigid = build(&trace, &plan(TRACE)).unwrap();
    let loose = build(&trace, &plan(Arrivals::Trace { jitter_ms: 1000 })).unwrap();
    assert!(loose.burstiness() < rigid.burstiness());
    let distinct: BTreeSet<u64> = offsets(&loose).into_iter().collect();
    assert_eq!(distinct.len(), 100);
    // A jitter below the tick keeps the two ticks apart.
    assert!(loose.requests()[..50].iter().all(|request| request.row < 50));
}

#[test]
fn impossible_parameters_name_the_mend() {
    let trace = trace(&[5, 5]);
    let refuse = |plan: Plan<'_>| build(&trace, &plan).unwrap_err();
    for rate_rps in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e7] {
        let error = refuse(Plan { rate_rps, ..plan(TRACE) });
        assert!(matches!(error, ScheduleError::Rate(_)), "{error}");
    }
    assert_eq!(refuse(plan(TRACE)), ScheduleError::NoSpan(2));
    let too_many = Plan { requests: Some(3), ..plan(TRACE) };
    assert_eq!(refuse(too_many), ScheduleError::TooFewRows { wanted: 3, rows: 2 });
    assert_eq!(refuse(Plan { requests: Some(0), ..plan(TRACE) }), ScheduleError::NoRequests);
    let slow = Plan { rate_rps: 1e-300, ..plan(Arrivals::Constant) };
    assert!(matches!(refuse(slow), ScheduleError::TooLong(_)));
}

#[test]
fn burstiness_is_the_squared_coefficient_of_variation_of_the_gaps() {
    // Gaps 1, 3: mean 2, variance 1.
    assert_eq!(burstiness(&[0, 1, 4]), Some(0.25));
    assert_eq!(burstiness(&[0, 1]), None);
    assert_eq!(burstiness(&[4, 4, 4]), None);
}

#[test]
fn poisson_gaps_vary_as_an_exponential_does() {
    let trace = trace(&vec![0; 4000]);
    let schedule = build(&trace, &plan(Arrivals::Poisson)).unwrap();
    // The squared CV of exponential gaps is 1 with standard error sqrt(8 / 4000) = 0.045; the seed is
    // fixed, so this cannot flicker.
    let burstiness = schedule.burstiness().unwrap();
    assert!((burstiness - 1.0).abs() < 0.18, "{burstiness}");
}

proptest! {
    #[test]
    fn every_schedule_is_ordered_inside_its_window_and_reproducible(
        times in prop::collection::vec(0_u64..1_000_000, 2..60),
        rate_rps in 0.01_f64..10_000.0,
        seed: u64,
        kind in 0_u8..4,
    ) {
        prop_assume!(times.iter().any(|time| *time != times[0]));
        let arrivals = match kind {
            0 => TRACE,
            1 => Arrivals::Trace { jitter_ms: 3000 },
            2 => Arrivals::Poisson,
            _ => Arrivals::Constant,
        };
        let trace = trace(&times);
        let plan = Plan { rate_rps, seed, ..plan(arrivals) };
        let schedule = build(&trace, &plan).unwrap();
        let offsets = offsets(&schedule);
        prop_assert!(offsets.is_sorted());
        prop_assert!(offsets.iter().all(|offset| *offset < schedule.length_ns()));
        let rows: BTreeSet<usize> = schedule.requests().iter().map(|r| r.row).collect();
        prop_assert_eq!(rows.len(), times.len());
        let ids: BTreeSet<_> = schedule.requests().iter().map(|r| r.trace_id).collect();
        prop_assert_eq!(ids.len(), times.len());
        prop_assert_eq!(build(&trace, &plan).unwrap(), schedule);
    }
}
