//! Good mask, knee and comparisons on synthetic runs.

use proptest::prelude::*;

use super::*;
use crate::outcome::Class;
use crate::records::RequestRecord;
use crate::rundir::to_json;
use crate::stats::{Counts, DispersionWord, Equivalence, LadderRate};
use crate::testkit::{
    self, SIZE, TPOT_SLO_NS, TTFT_SLO_NS, delivered, evidence, failed, with_good,
};

const BOUNDS: Bounds = Bounds { ttft_ns: TTFT_SLO_NS, tpot_ns: TPOT_SLO_NS };

#[test]
fn a_nanosecond_over_either_bound_is_a_miss_and_both_must_hold() {
    let row = |ttft: u64, tpot: u64| RequestRecord {
        tpot_ns: Some(tpot),
        ..delivered(testkit::trace_id("a", 1.0, 1, 0), 0, i64::try_from(ttft).unwrap())
    };
    let is_good = |ttft, tpot| good(&row(ttft, tpot), BOUNDS, SingleTokenPolicy::TtftOnly);
    assert!(is_good(TTFT_SLO_NS, TPOT_SLO_NS));
    assert!(!is_good(TTFT_SLO_NS + 1, TPOT_SLO_NS));
    assert!(!is_good(TTFT_SLO_NS, TPOT_SLO_NS + 1));
}

#[test]
fn knees_goodput_hits_and_comparisons_follow_from_the_records() {
    let analysis = analyze(&evidence());
    let [floor, aware] = analysis.arms.as_slice() else { panic!("two arms") };
    let KneeOutcome::Bracketed { rung } = floor.knee.tested else { panic!("{:?}", floor.knee) };
    assert_eq!(rung.rate_rps, 10.0);
    // Good of repetitions 1..5: 96, 95, 96, 95, 96 = 478 in 50 s on 2 accelerators.
    assert!((rung.goodput_per_accelerator - 478.0 / 50.0 / 2.0).abs() < 1e-12);
    assert!(matches!(aware.knee.tested, KneeOutcome::AtLeast { rung } if rung.rate_rps == 20.0));
    assert_eq!(floor.cells[0].counts, Counts { good: 478, attempted: 500 });
    assert_eq!(floor.cells[0].prefix_hit_share, Some(0.4));
    let outcomes: Vec<Outcome> = analysis.comparisons.iter().map(|c| c.outcome).collect();
    assert_eq!(outcomes, [Outcome::Inconclusive, Outcome::Win]);
    let estimate = analysis.comparisons[1].difference.as_ref().unwrap().estimate;
    // aware at 20: 93, 94, 92, 93, 94; floor: 71..75.
    assert!((estimate - (0.932 - 0.73)).abs() < 1e-12, "{estimate}");
}

#[test]
fn drain_lowers_goodput_and_never_enters_the_headline() {
    let mut evidence = evidence();
    for rep in &mut evidence.repetitions {
        rep.requests[99].end_ns =
            protocol::Nanos::new(rep.run.window_start_ns.get() + 10_500_000_000);
        testkit::sum_up(rep);
    }
    let cell = &analyze(&evidence).arms[0].cells[0];
    let (headline, drain) = (cell.goodput_per_accelerator, cell.goodput_incl_drain_per_accelerator);
    // 0.5 s of drain on 10 s of schedule.
    assert!((headline.unwrap() / drain.unwrap() - 10.5 / 10.0).abs() < 1e-9);
}

#[test]
fn a_lost_row_is_attempted_and_discards_its_repetition() {
    let mut evidence = evidence();
    evidence.repetitions[0].requests.pop();
    let cell = &analyze(&evidence).arms[0].cells[0];
    assert_eq!(cell.repetitions[0].classes["lost"], 1);
    assert_eq!(cell.repetitions[0].counts.attempted, SIZE);
    assert_eq!((cell.repetitions[0].valid, cell.valid), (false, 4));
    assert_eq!(cell.counts.attempted, 4 * SIZE, "a discarded repetition entered the pool");
    // With the 10 rps rung out, only the 20 rps rung is a candidate, and the floor fails it: whether the
    // knee is 10 rps or below cannot be told yet.
    let knee = analyze(&evidence).arms[0].knee;
    assert_eq!(knee.tested, KneeOutcome::NoCandidate);
    assert!(matches!(knee.provisional, KneeOutcome::Bracketed { rung } if rung.rate_rps == 10.0));
}

#[test]
fn a_knee_is_at_least_or_below_only_when_the_ladders_ends_are_candidates() {
    let mut low = with_good(|_, _, _| 50);
    assert_eq!(analyze(&low).arms[0].knee.tested, KneeOutcome::Below { rate_rps: 10.0 });
    low.repetitions.retain(|rep| rep.run.rate_rps > 15.0);
    assert_eq!(analyze(&low).arms[0].knee.tested, KneeOutcome::NoCandidate);
    let mut high = with_good(|_, _, _| 95);
    high.repetitions.retain(|rep| rep.run.rate_rps < 15.0);
    assert_eq!(analyze(&high).arms[0].knee.tested, KneeOutcome::NoCandidate);
}

#[test]
fn a_ladder_that_is_not_monotone_keeps_its_highest_rung_and_says_so() {
    let analysis = analyze(&with_good(|_, rate, number| {
        if rate > 15.0 { 91 + u64::from(number % 2) } else { 88 + u64::from(number % 2) }
    }));
    let knee = analysis.arms[0].knee;
    assert!(matches!(knee.tested, KneeOutcome::AtLeast { rung } if rung.rate_rps == 20.0));
    assert_eq!((knee.monotone, knee.conservative_rps), (false, None));
}

#[test]
fn identical_repetitions_fall_back_to_the_pooled_interval() {
    let analysis = analyze(&with_good(|arm, _, _| if arm == "floor" { 80 } else { 100 }));
    let comparison = &analysis.comparisons[0];
    assert_eq!((comparison.read_from.as_str(), comparison.outcome), ("pooled", Outcome::Win));
    assert!(matches!(
        analysis.arms[1].cells[0].interval_t,
        crate::stats::Interval::Degenerate { .. }
    ));
}

#[test]
fn the_same_evidence_gives_the_same_bytes_from_memory_and_from_disk() {
    let evidence = evidence();
    let first = to_json(&analyze(&evidence)).unwrap();
    assert_eq!(first, to_json(&analyze(&evidence)).unwrap());
    let dir = tempfile::tempdir().unwrap();
    testkit::write(&evidence, dir.path());
    crate::run::analyze_dir(dir.path(), &testkit::Agreeing).unwrap();
    let written = std::fs::read(dir.path().join("analysis.json")).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), String::from_utf8(first).unwrap());
}

fn rows(ttfts: &[(u32, bool)]) -> Vec<RequestRecord> {
    let row = |(i, (ttft_ms, ok)): (u64, &(u32, bool))| {
        let row = delivered(testkit::trace_id("a", 1.0, 1, i), i, i64::from(*ttft_ms) * 1_000_000);
        if *ok { row } else { failed(&row, Class::Reset) }
    };
    (0..).zip(ttfts).map(row).collect()
}

proptest! {
    // Each case analyses a whole run; the property does not depend on magnitudes.
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_failed_request_more_never_raises_the_good_fraction(
        ttfts in prop::collection::vec((0_u32..600, any::<bool>()), 1..60),
    ) {
        let template = testkit::repetition("a", 1.0, 1, 50).schedule;
        let of = |requests: &[RequestRecord]| {
            Mask::of(&template[..requests.len()], requests, BOUNDS).ttft_only.fraction().unwrap()
        };
        let before = rows(&ttfts);
        let mut more = ttfts;
        more.push((0, false));
        prop_assert!(of(&rows(&more)) <= of(&before));
    }

    #[test]
    fn the_order_of_records_does_not_matter(seed in 0_u64..1000) {
        let mut evidence = evidence();
        let expected = analyze(&evidence);
        for rep in &mut evidence.repetitions {
            rep.requests.sort_by_key(|row| row.index.wrapping_mul(seed * 2 + 1) % 101);
            for observed in &mut rep.observed {
                observed.rows.reverse();
            }
        }
        prop_assert_eq!(analyze(&evidence), expected);
    }
}

fn with_delta(delta: f64, good: impl Fn(&str, f64, u32) -> u64) -> AnalysisFile {
    let mut evidence = with_good(good);
    let text = format!("{}[statistics]\ndelta = {delta}\n", testkit::CAMPAIGN);
    evidence.campaign = testkit::campaign(&text);
    analyze(&evidence)
}

#[test]
fn equivalence_is_tested_only_within_a_registered_margin() {
    let vary = |_: &str, _: f64, number: u32| 92 + u64::from(number % 3);
    assert!(analyze(&with_good(vary)).comparisons.iter().all(|c| c.equivalence.is_none()));
    let outcome = |delta| {
        let analysis = with_delta(delta, vary);
        let test = analysis.comparisons[0].equivalence.clone().unwrap();
        assert_eq!(test.tost.margin.alpha, 0.05);
        (test.tost.outcome, test.repetitions_needed)
    };
    assert_eq!(outcome(0.05).0, Equivalence::Equivalent);
    let (word, needed) = outcome(0.005);
    assert_eq!(word, Equivalence::InconclusiveUnderpowered);
    assert!(needed.is_some_and(|n| n > 5), "{needed:?}");
}

#[test]
fn arms_without_any_variance_are_compared_over_pooled_requests() {
    let analysis = with_delta(0.05, |_, _, _| 100);
    let test = analysis.comparisons[0].equivalence.clone().unwrap();
    assert!(test.holds() && test.tost.note.is_some() && test.repetitions_needed.is_none());
}

#[test]
fn the_certified_knee_lies_below_the_tested_one_when_the_rung_is_near_the_target() {
    let analysis = analyze(&with_good(|_, rate, number| match rate > 15.0 {
        true => [80, 100, 100, 85, 95][number as usize - 1],
        false => 97 + u64::from(number % 2),
    }));
    let knee = &analysis.arms[0].knee;
    assert_eq!(knee.tested.rung().map(|rung| rung.rate_rps), Some(20.0));
    assert_eq!(knee.certified.certified, LadderRate::At { rate_rps: 10.0 });
    assert_eq!(knee.certified.fails_from_rps, None);
    assert_eq!(knee.isotonic, LadderRate::AtLeast { rate_rps: 20.0 });
    assert_eq!(knee.interpolated_rps, None);
}

#[test]
fn scatter_beyond_the_requests_own_is_told() {
    let word = |good: fn(u32) -> u64| {
        let analysis = analyze(&with_good(|_, _, number| good(number)));
        analysis.arms[0].cells[0].dispersion.map(|dispersion| dispersion.word)
    };
    assert_eq!(word(|n| 40 + 10 * u64::from(n)), Some(DispersionWord::Overdispersed));
    assert_eq!(word(|n| 88 + u64::from(n)), Some(DispersionWord::Agrees));
    assert_eq!(word(|_| 90), Some(DispersionWord::Underdispersed));
}

#[test]
fn latency_has_an_interval_that_says_how_it_was_made() {
    let cell = &analyze(&evidence()).arms[0].cells[0];
    let (low, high) = cell.within_run_iid.ttft_p50_ms.unwrap().ends().unwrap();
    let median = cell.latency.ttft_p50_ms.unwrap();
    assert!(low <= median && median <= high, "{low} {median} {high}");
}

#[test]
fn every_comparison_has_an_exact_p_and_counts_in_the_adjustment() {
    let comparisons = analyze(&evidence()).comparisons;
    let exact: Vec<_> = comparisons.iter().map(|it| it.permutation.unwrap()).collect();
    // At 10 rps the arms are alike; at 20 every repetition of one lies above every one of the other.
    assert_eq!((exact[0].p, exact[0].holm_p), (1.0, 1.0));
    assert!((exact[1].p - 2.0 / 252.0).abs() < 1e-15, "{exact:?}");
    assert!((exact[1].holm_p - 4.0 / 252.0).abs() < 1e-15, "{exact:?}");
    assert!((exact[1].attainable - 2.0 / 252.0).abs() < 1e-15, "{exact:?}");
}

#[test]
fn the_good_fraction_moves_with_the_bounds_and_never_down() {
    let analysis = analyze(&evidence());
    let cell = &analysis.arms[0].cells[1];
    let at = |ttft: f64, tpot: f64| {
        let is = |point: &&SloPoint| (point.ttft_multiple, point.tpot_multiple) == (ttft, tpot);
        cell.slo_sensitivity.iter().find(is).unwrap().good_fraction
    };
    assert_eq!(cell.slo_sensitivity.len(), 25);
    assert_eq!(Some(at(1.0, 1.0)), cell.good_fraction);
    // Misses have a TTFT of 301 ms of 300 and every TPOT is half of its bound.
    assert_eq!((at(1.25, 1.0), at(0.5, 0.5)), (1.0, at(1.0, 1.0)));
    let mut tight = evidence();
    tight.repetitions.iter_mut().flat_map(|rep| &mut rep.requests).for_each(|row| {
        row.tpot_ns = Some(10_000_001);
    });
    assert_eq!(analyze(&tight).arms[0].cells[1].slo_sensitivity.len(), 0, "nothing is valid");
}

#[test]
fn a_cell_is_broken_down_by_class_and_length() {
    let mut evidence = evidence();
    for rep in &mut evidence.repetitions {
        for (plan, row) in rep.schedule.iter_mut().zip(&mut rep.requests).take(10) {
            plan.input_tokens = Some(1_024);
            *row = failed(row, Class::Reset);
        }
        rep.observed[0].rows =
            rep.requests.iter().flat_map(|row| testkit::legs(row, "127.0.0.1:3")).collect();
        testkit::sum_up(rep);
    }
    let mut registered = BTreeMap::new();
    for rep in &evidence.repetitions {
        let key = format!("r{}/rep{}", rep.place.rate_rps, rep.place.repetition);
        registered.insert(key, rep.run.schedule_sha256.clone());
    }
    evidence.manifest.schedules = registered;
    let cell = &analyze(&evidence).arms[0].cells[0];
    assert_eq!(cell.classes, [("ok".to_owned(), 450), ("reset".to_owned(), 50)].into());
    let band = |from, below, good, attempted| Band {
        from_tokens: from,
        below_tokens: Some(below),
        counts: Counts { good, attempted },
    };
    // 478 good without the first ten of each of five repetitions.
    assert_eq!(cell.by_length.input, [band(0, 1_024, 428, 450), band(1_024, 4_096, 0, 50)]);
    assert_eq!(cell.by_length.output, [band(0, 16, 428, 500)]);
    let rep = &cell.repetitions[0];
    assert_eq!((rep.paired, rep.invalid_framing, rep.client_lag_p99_ns), (90, 0, Some(10_000)));
    let latency = cell.latency;
    assert_eq!(latency.ttft_from_sent_p50_ms.unwrap(), latency.ttft_p50_ms.unwrap() - 1.0);
}

#[test]
fn both_policies_are_told_where_a_request_has_no_tpot() {
    let mut evidence = evidence();
    assert_eq!(analyze(&evidence).arms[0].cells[0].good_fraction_other_policy, None);
    let row = &mut evidence.repetitions[0].requests[0];
    row.completion_tokens = Some(1);
    (row.class, row.tpot_ns) = (Class::SingleToken, None);
    row.tpot_undefined = Some(crate::records::TpotUndefined::SingleToken);
    let rows: Vec<_> = evidence.repetitions[0].requests.clone();
    evidence.repetitions[0].observed[0].rows =
        rows.iter().flat_map(|row| testkit::legs(row, "127.0.0.1:3")).collect();
    let cell = &analyze(&evidence).arms[0].cells[0];
    assert_eq!(cell.good_fraction, Some(478.0 / 500.0));
    assert_eq!(cell.good_fraction_other_policy, Some(477.0 / 500.0));
}

#[test]
fn the_resampled_knee_shares_out_every_resample() {
    let shares = analyze(&evidence()).arms[0].knee_resampled.clone().unwrap();
    assert_eq!(shares, [(10.0, 1.0), (20.0, 0.0)]);
    let near = analyze(&with_good(|_, rate, number| match rate > 15.0 {
        true => [80, 100, 100, 85, 95][number as usize - 1],
        false => 97 + u64::from(number % 2),
    }));
    let shares = near.arms[0].knee_resampled.clone().unwrap();
    assert!(shares.iter().all(|(_, share)| *share > 0.1), "{shares:?}");
    assert!((shares.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-12);
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let evidence = evidence();
    let alone = to_json(&analyze(&evidence)).unwrap();
    std::thread::scope(|scope| {
        let of_thread = || scope.spawn(|| to_json(&analyze(&evidence)).unwrap());
        let threads: Vec<_> = (0..4).map(|_| of_thread()).collect();
        threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), alone));
    });
}
