//! What has no interval, no ratio or no test is typed.

use super::*;

#[test]
fn quantiles_outside_their_domain_are_none() {
    assert_eq!(t_quantile(0.0, 4.0), None);
    assert_eq!(t_quantile(0.5, 0.0), None);
    assert_eq!(t_quantile(f64::NAN, 4.0), None);
    assert_eq!(normal_quantile(1.0), None);
    assert_eq!(normal_cdf(f64::NAN), None);
    assert_eq!(chi2_quantile(0.5, 0.0), None);
    assert_eq!(beta_cdf(0.5, 0.0, 1.0), None);
    assert_eq!(beta_cdf(1.5, 1.0, 1.0), None);
    assert_eq!(quantile_type1::<u64>(&[], 0.5), None);
    assert_eq!(quantile_type7(&[1.0], 1.5), None);
    assert_eq!(harrell_davis(&[], 0.5), None);
}

#[test]
fn a_value_that_is_no_number_has_no_moments() {
    assert_eq!(moments(&[1.0, f64::NAN]), None);
    assert_eq!(moments(&[1.0, f64::INFINITY]), None);
    assert_eq!(Bootstrap::of_mean(&[1.0, f64::NAN]), None);
}

#[test]
fn the_incomplete_beta_converges_for_a_million_requests() {
    let n = 1_000_000_u64;
    // The median of a binomial with mean 990000 is 990000, and half its mass lies there.
    let at_mean = binomial_cdf(990_000, n, 0.99).unwrap();
    assert!((at_mean - 0.5).abs() < 0.01, "{at_mean}");
    let mirrored = 1.0 - binomial_cdf(9_999, n, 0.01).unwrap();
    assert!((at_mean - mirrored).abs() < 1e-10, "{at_mean} {mirrored}");
}

#[test]
fn enumeration_counts_every_resample_and_refuses_thirteen() {
    let twelve: Vec<f64> = (0..12).map(f64::from).collect();
    assert!(matches!(noise_floor_bootstrap(&twelve, 0.95), HalfWidth::Value { .. }));
    let thirteen: Vec<f64> = (0..13).map(f64::from).collect();
    assert!(matches!(noise_floor_bootstrap(&thirteen, 0.95), HalfWidth::NotAttainable { .. }));
    assert!(matches!(noise_floor_bootstrap(&[0.9], 0.95), HalfWidth::NotAttainable { .. }));
}

#[test]
fn differences_without_variance_or_values_are_typed() {
    let flat = welch(&[1.0, 1.0], &[1.0, 1.0], 0.95).unwrap();
    assert!(matches!(flat.interval, Interval::Degenerate { .. }));
    let single = welch(&[1.0], &[0.9, 1.0], 0.95).unwrap();
    assert_eq!(single.interval, Interval::TooFew { have: 1, need: 2 });
    assert_eq!(welch(&[], &[1.0], 0.95), None);
    assert_eq!(paired(&[1.0], &[1.0, 1.0], 0.95), None);
    assert!(matches!(t_interval(&[0.9, 0.9, 0.9], 0.95), Interval::Degenerate { .. }));
    assert_eq!(t_interval(&[0.9], 0.95), Interval::TooFew { have: 1, need: 2 });
    assert_eq!(wilson(Counts::default(), 0.95), Interval::TooFew { have: 0, need: 1 });
}

fn counts(good: u64, attempted: u64) -> Counts {
    Counts { good, attempted }
}

fn unknown() -> HalfWidth {
    HalfWidth::NotAttainable { reason: "no baseline".to_owned() }
}

#[test]
fn equivalence_is_strict_at_the_edge() {
    // Without variance Newcombe stands in; its ends become the margin.
    let arm = [counts(90, 100); 3];
    let wide = Margin { delta: 0.5, alpha: 0.05 };
    let test = tost_repetitions(&arm, &arm, TostMethod::Welch, wide, &unknown());
    assert_eq!((test.method, test.outcome), (TostMethod::Newcombe, Equivalence::Equivalent));
    assert!(test.note.is_some());
    let (low, high) = test.interval.ends().unwrap();
    let edge = Margin { delta: high.max(-low), alpha: 0.05 };
    let at_edge = tost_repetitions(&arm, &arm, TostMethod::Welch, edge, &unknown());
    assert_ne!(at_edge.outcome, Equivalence::Equivalent);
}

#[test]
fn a_margin_below_what_is_resolvable_is_no_statement_about_parity() {
    let (a, b) = ([0.90, 0.95, 0.88, 0.93, 0.91], [0.85, 0.97, 0.80, 0.92, 0.86]);
    let margin = Margin { delta: 0.01, alpha: 0.05 };
    let outcome = |resolvable| {
        tost_welch(&a, &b, margin, &HalfWidth::Value { half_width: resolvable }).outcome
    };
    assert_eq!(outcome(0.011), Equivalence::InconclusiveUnderpowered);
    assert_eq!(outcome(0.01), Equivalence::Inconclusive);
    // Far apart is told however small the margin.
    let far = tost_welch(&[0.9, 0.91], &[0.1, 0.11], margin, &HalfWidth::Value { half_width: 0.5 });
    assert_eq!(far.outcome, Equivalence::Different);
    let single = tost_welch(&[0.9], &b, margin, &unknown());
    assert_eq!(single.outcome, Equivalence::NotComparable);
    let senseless = tost_welch(&a, &b, Margin { delta: 0.0, alpha: 0.05 }, &unknown());
    assert_eq!(senseless.outcome, Equivalence::NotComparable);
}

#[test]
fn the_order_statistic_interval_stands_in_for_bca() {
    let values: Vec<u64> = (1..=1000).collect();
    let of = |p| quantile_interval(&values, p, 0.95).unwrap();
    // Ten values beyond the quantile: BCa; nine: the exact interval; one: no upper end.
    assert!(matches!(of(0.99), QuantileInterval::Bca { low: 983, high: 996, .. }));
    assert!(matches!(of(0.991), QuantileInterval::OrderStatistic { .. }));
    assert!(matches!(
        of(0.999),
        QuantileInterval::NotAttainable { low: Some(997), high: None, min_n: 3688 }
    ));
    let mut tied = values.clone();
    tied[989] = tied[988];
    let interval = quantile_interval(&tied, 0.99, 0.95).unwrap();
    assert!(matches!(interval, QuantileInterval::OrderStatistic { .. }));
    assert_eq!(quantile_interval::<u64>(&[], 0.5, 0.95), None);
    let two = quantile_interval(&[1_u64, 2], 0.5, 0.95).unwrap();
    assert_eq!(two, QuantileInterval::NotAttainable { low: None, high: None, min_n: 6 });
}

#[test]
fn dispersion_has_a_word_for_both_sides() {
    let word = |good: &[u64]| {
        let reps: Vec<Counts> = good.iter().map(|good| counts(*good, 400)).collect();
        overdispersion(&reps).map(|dispersion| dispersion.word)
    };
    assert_eq!(word(&[360, 366, 355, 362, 358]), Some(DispersionWord::Agrees));
    assert_eq!(word(&[360, 390, 310, 362, 330]), Some(DispersionWord::Overdispersed));
    assert_eq!(word(&[360, 360, 360, 360, 360]), Some(DispersionWord::Underdispersed));
    assert_eq!(word(&[400, 400]), None);
    assert_eq!(word(&[300]), None);
}

fn rung(rate_rps: f64, good: &[u64]) -> LadderRung {
    LadderRung { rate_rps, repetitions: good.iter().map(|good| counts(*good, 100)).collect() }
}

#[test]
fn the_certified_knee_stops_at_the_first_failure_and_is_censored_at_both_ends() {
    let climb = |ladder: &[LadderRung]| certified_knee(ladder, 0.9, 0.95);
    let high = rung(2.0, &[97, 98, 99, 98, 97]);
    let near = rung(4.0, &[85, 97, 93, 90, 91]);
    let low = rung(6.0, &[50, 52, 49, 51, 50]);
    let fine = rung(8.0, &[97, 98, 99, 98, 97]);
    let knee = climb(&[high.clone(), near, low.clone(), fine.clone()]);
    assert_eq!(knee.certified, LadderRate::At { rate_rps: 2.0 });
    assert_eq!(knee.fails_from_rps, Some(6.0));
    let all = climb(&[high.clone(), fine]);
    assert_eq!(all.certified, LadderRate::AtLeast { rate_rps: 8.0 });
    assert_eq!(all.fails_from_rps, None);
    assert_eq!(climb(&[low, high]).certified, LadderRate::Below { rate_rps: 6.0 });
    assert_eq!(climb(&[]).certified, LadderRate::Untested);
    // 100 of 100 five times over: no variance, and Wilson over 500 requests says at least 0.99.
    let perfect = climb(&[rung(1.0, &[100; 5])]);
    assert_eq!(perfect.certified, LadderRate::AtLeast { rate_rps: 1.0 });
    let one = climb(&[rung(1.0, &[100])]);
    assert_eq!(one.certified, LadderRate::Below { rate_rps: 1.0 });
}

#[test]
fn the_knee_law_ends_where_the_ladder_does() {
    let ladder = [rung(2.0, &[95, 80, 96]), rung(4.0, &[95, 70, 96])];
    let law = knee_bootstrap(&ladder, 0.9).unwrap();
    assert_eq!(law.total, 27);
    assert_eq!(law.below + law.rates.iter().map(|(_, weight)| weight).sum::<u64>(), 27);
    let (low, high) = law.percentile(0.95);
    assert_eq!((low, high), (None, Some(4.0)));
    assert_eq!(knee_bootstrap(&[rung(2.0, &[95])], 0.9), None);
    assert_eq!(knee_bootstrap(&[rung(2.0, &[95, 9]), rung(4.0, &[9])], 0.9), None);
}

#[test]
fn repetitions_needed_is_the_smallest_number_with_the_power() {
    let power = |n| tost_power(Design::TwoSample, n, 0.02, 0.03, 0.05, 0.0);
    let needed = repetitions_needed(USUAL_POWER, 100, power).unwrap();
    assert!(power(needed).unwrap() >= 0.8 && power(needed - 1).unwrap() < 0.8, "{needed}");
    assert_eq!(repetitions_needed(USUAL_POWER, needed - 1, power), None);
    let win = |n| difference_power(Design::Paired, n, 0.02, 0.95, 0.03);
    let needed = repetitions_needed(USUAL_POWER, 100, win).unwrap();
    assert!(win(needed).unwrap() >= 0.8 && win(needed - 1).unwrap() < 0.8, "{needed}");
    assert_eq!(tost_power(Design::Paired, 1, 0.02, 0.03, 0.05, 0.0), None);
    assert_eq!(tost_power(Design::Paired, 5, 0.0, 0.03, 0.05, 0.0), None);
}

#[test]
fn the_power_of_a_difference_at_none_is_half_the_error_rate() {
    for n in [3, 5, 20] {
        let power = difference_power(Design::TwoSample, n, 1.0, 0.95, 0.0).unwrap();
        assert!((power - 0.025).abs() < 1e-6, "{n}: {power}");
    }
}

#[test]
fn a_noise_bound_that_needs_requests_says_how_many() {
    assert_eq!(requests_needed(0.02, 0.1), Some(4900));
    assert_eq!(requests_needed(0.9, 0.1), Some(12));
    assert_eq!(requests_needed(1.0, 0.1), Some(1));
    assert_eq!(requests_needed(0.0, 0.1), None);
}

#[test]
fn constant_series_have_no_correlation_and_no_trend() {
    let flat = [3.0; 20];
    assert_eq!(autocorrelations(&flat, 3), None);
    assert_eq!(von_neumann_ratio(&flat), None);
    assert_eq!(optimal_block_length(&flat), None);
    let trend = mann_kendall(&flat).unwrap();
    assert_eq!((trend.s, trend.tau_b, trend.p_two_sided), (0, None, 1.0));
    assert_eq!(ols(&flat, &flat), None);
    assert_eq!(theil_sen(&flat, &flat, 0.95), None);
    assert_eq!(gap_cv2(&[0.0, 0.0]), None);
    assert_eq!(mser5(&flat[..9]), None);
    assert_eq!(circular_block_variance(&flat, 21), None);
}

#[test]
fn permutation_tests_refuse_what_they_cannot_enumerate() {
    assert_eq!(permutation_test(&[], &[1.0]), None);
    assert_eq!(permutation_test(&[0.0; 20], &[1.0; 20]), None);
    assert_eq!(sign_flip_test(&[]), None);
    assert_eq!(sign_flip_test(&[1.0; 21]), None);
    let same = permutation_test(&[0.3, 0.1], &[0.1, 0.3]).unwrap();
    assert_eq!((same.p, same.relabellings), (1.0, 6));
}
