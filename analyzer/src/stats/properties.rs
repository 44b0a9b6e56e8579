//! What must hold for any data: the statistics' own laws, whatever the numbers.

use proptest::prelude::*;

use super::*;

fn fractions() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((0_u32..=1000).prop_map(|n| f64::from(n) / 1000.0), 2..=6)
}

fn repetitions() -> impl Strategy<Value = Vec<Counts>> {
    let counts = (1_u64..500).prop_flat_map(|attempted| {
        (0..=attempted).prop_map(move |good| Counts { good, attempted })
    });
    prop::collection::vec(counts, 2..=6)
}

fn latencies() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1_u64..5_000_000_000, 1..400).prop_map(|mut values| {
        values.sort_unstable();
        values
    })
}

fn unknown() -> HalfWidth {
    HalfWidth::NotAttainable { reason: "no baseline".to_owned() }
}

/// Every ordered resample, one by one: slow, and nothing like counting multisets.
fn by_product(values: &[f64]) -> Vec<f64> {
    let n = values.len();
    let all = n.pow(u32::try_from(n).unwrap());
    let mut means: Vec<f64> = (0..all)
        .map(|mut code| {
            let mut sum = 0.0;
            for _ in 0..n {
                sum += values[code % n];
                code /= n;
            }
            sum / n as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    means
}

fn inside(interval: &Interval, estimate: f64) -> bool {
    let slack = 1e-12 * estimate.abs().max(1.0);
    interval.ends().is_none_or(|(low, high)| low <= estimate + slack && estimate - slack <= high)
}

fn width(interval: &Interval) -> f64 {
    interval.half_width().unwrap_or(0.0)
}

proptest! {
    #[test]
    fn multisets_are_the_product(values in prop::collection::vec(0_u32..50, 2..=5)) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let law = Bootstrap::of_mean(&values).unwrap().law;
        let product = by_product(&values);
        prop_assert_eq!(law.total(), product.len() as u64);
        for p in [0.0, 0.025, 0.31, 0.5, 0.975, 1.0] {
            let plain = quantile_type7(&product, p).unwrap();
            prop_assert!((law.quantile_type7(p).unwrap() - plain).abs() < 1e-9);
        }
    }

    #[test]
    fn intervals_hold_their_estimate_and_grow_with_confidence(reps in repetitions()) {
        let values: Vec<f64> = reps.iter().map(|rep| rep.fraction().unwrap()).collect();
        let pooled = reps.iter().fold(Counts::default(), |sum, rep| sum.plus(*rep));
        let (mean, p) = (moments(&values).unwrap().mean, pooled.fraction().unwrap());
        let (t, wide) = (t_interval(&values, 0.9), t_interval(&values, 0.99));
        prop_assert!(inside(&t, mean) && width(&t) <= width(&wide));
        let (w, wide) = (wilson(pooled, 0.9), wilson(pooled, 0.99));
        prop_assert!(inside(&w, p) && width(&w) <= width(&wide));
        let exact = clopper_pearson(pooled, 0.9);
        prop_assert!(inside(&exact, p));
        let boot = cluster_bootstrap(&reps).unwrap();
        let percentile = |confidence| boot.percentile(confidence, QuantileType::Linear);
        prop_assert!(width(&percentile(0.9)) <= width(&percentile(0.99)));
        let (bca, wide) = (boot.bca(0.9, QuantileType::Linear), boot.bca(0.95, QuantileType::Linear));
        prop_assert!(wide.ends().is_none() || width(&bca) <= width(&wide) + 1e-12);
    }

    #[test]
    fn order_and_unit_change_nothing(values in fractions(), turn in 0_usize..6) {
        let mut turned = values.clone();
        turned.rotate_left(turn % values.len());
        let scaled: Vec<f64> = values.iter().map(|value| value * 1024.0).collect();
        let ends = |values: &[f64]| t_interval(values, 0.95).ends();
        let boot = |values: &[f64]| {
            Bootstrap::of_mean(values).unwrap().bca(0.95, QuantileType::Linear).ends()
        };
        for of in [&ends as &dyn Fn(&[f64]) -> Option<(f64, f64)>, &boot] {
            let (plain, other, unit) = (of(&values), of(&turned), of(&scaled));
            prop_assert_eq!(plain.is_some(), other.is_some());
            prop_assert_eq!(plain.is_some(), unit.is_some());
            if let (Some(plain), Some(other), Some(unit)) = (plain, other, unit) {
                prop_assert!((plain.0 - other.0).abs() < 1e-9 && (plain.1 - other.1).abs() < 1e-9);
                // A power of two scales without rounding.
                prop_assert!((plain.0 * 1024.0 - unit.0).abs() < 1e-6);
                prop_assert!((plain.1 * 1024.0 - unit.1).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn quantile_intervals_follow_monotone_maps(values in latencies(), p in 0.05_f64..0.999) {
        let of = |values: &[u64]| quantile_interval(values, p, 0.95).unwrap();
        let plain = of(&values);
        let mapped: Vec<u64> = values.iter().map(|value| value * 3 + 7).collect();
        let expected = plain.ends().map(|(low, high)| (low * 3 + 7, high * 3 + 7));
        prop_assert_eq!(of(&mapped).ends(), expected);
        let estimate = quantile_type1(&values, p).unwrap();
        prop_assert!(plain.ends().is_none_or(|(low, high)| low <= estimate && estimate <= high));
        let wide = quantile_interval(&values, p, 0.99).unwrap();
        if let (Some((low, high)), Some((lower, higher))) = (plain.ends(), wide.ends()) {
            prop_assert!(lower <= low && high <= higher);
        }
    }

    #[test]
    fn equivalence_is_a_mirror(a in fractions(), b in fractions(), delta in 0.001_f64..0.5) {
        let margin = Margin { delta, alpha: 0.05 };
        let there = tost_welch(&a, &b, margin, &unknown());
        let back = tost_welch(&b, &a, margin, &unknown());
        prop_assert_eq!(there.outcome, back.outcome);
        if let (Some((low, high)), Some((mirrored_low, mirrored_high))) =
            (there.interval.ends(), back.interval.ends())
        {
            prop_assert!((low + mirrored_high).abs() < 1e-9 && (high + mirrored_low).abs() < 1e-9);
            let (p, swapped) = (there.p_lower.unwrap(), back.p_upper.unwrap());
            prop_assert!((p - swapped).abs() < 1e-9);
        }
    }

    #[test]
    fn holm_raises_and_keeps_the_order(p in prop::collection::vec(0.0_f64..=1.0, 1..12)) {
        let adjusted = holm(&p);
        for (i, raw) in p.iter().enumerate() {
            prop_assert!(*raw <= adjusted[i] && adjusted[i] <= 1.0);
            prop_assert!(adjusted[i] <= bonferroni(&p)[i] + 1e-15);
            for (j, other) in p.iter().enumerate() {
                prop_assert!(raw > other || adjusted[i] <= adjusted[j]);
            }
        }
    }

    #[test]
    fn isotonic_curves_fall_and_keep_the_mean(rungs in repetitions()) {
        let curve = isotonic_decreasing(&rungs).unwrap();
        prop_assert!(curve.windows(2).all(|pair| pair[0] >= pair[1]));
        let kept: f64 = curve.iter().zip(&rungs).map(|(p, rung)| p * rung.attempted as f64).sum();
        let good: u64 = rungs.iter().map(|rung| rung.good).sum();
        prop_assert!((kept - good as f64).abs() < 1e-6);
        if is_decreasing(&rungs) {
            let raw: Vec<f64> = rungs.iter().map(|rung| rung.fraction().unwrap()).collect();
            prop_assert_eq!(curve, raw);
        }
    }

    #[test]
    fn a_further_failure_never_raises_the_good_fraction(reps in repetitions()) {
        for rep in reps {
            let worse = Counts { good: rep.good, attempted: rep.attempted + 1 };
            prop_assert!(worse.fraction().unwrap() <= rep.fraction().unwrap());
            let (low, high) = wilson(rep, 0.95).ends().unwrap();
            let (worse_low, worse_high) = wilson(worse, 0.95).ends().unwrap();
            prop_assert!(worse_low <= low + 1e-12 && worse_high <= high + 1e-12);
        }
    }

    #[test]
    fn the_knees_are_ordered(
        ladder in prop::collection::vec(prop::collection::vec(0_u64..=100, 3), 1..5),
    ) {
        let ladder: Vec<LadderRung> = ladder.into_iter().enumerate().map(|(i, good)| LadderRung {
            rate_rps: (i + 1) as f64,
            repetitions: good.into_iter().map(|good| Counts { good, attempted: 100 }).collect(),
        }).collect();
        let rate = |knee: LadderRate| knee.rate().unwrap_or(0.0);
        let certified = certified_knee(&ladder, 0.8, 0.95);
        let tested = rate(knee_tested(&ladder, 0.8));
        let before = rate(knee_before_first_failure(&ladder, 0.8));
        prop_assert!(before <= tested);
        prop_assert!(rate(certified.certified) <= before);
        prop_assert!(certified.fails_from_rps.is_none_or(|fails| fails > rate(certified.certified)));
        let law = knee_bootstrap(&ladder, 0.8).unwrap();
        prop_assert_eq!(law.below + law.rates.iter().map(|(_, n)| n).sum::<u64>(), 27);
    }

    #[test]
    fn no_number_leaves_the_module_that_is_none(values in prop::collection::vec(
        prop_oneof![Just(0.0), Just(1.0), Just(-1e300), Just(1e300), Just(1e-300), -1e3_f64..1e3],
        0..7,
    )) {
        let finite = |interval: Interval| {
            interval.ends().is_none_or(|(low, high)| low.is_finite() && high.is_finite())
        };
        prop_assert!(finite(t_interval(&values, 0.95)));
        prop_assert!(finite(sd_interval(&values, 0.95)));
        prop_assert!(finite(cv_interval(&values, 0.95)));
        prop_assert!(cv(&values).value().is_none_or(f64::is_finite));
        if let Some(boot) = Bootstrap::of_mean(&values) {
            prop_assert!(finite(boot.basic(0.95)) && finite(boot.bca(0.95, QuantileType::Linear)));
        }
        if let Some(difference) = welch(&values, &values, 0.95) {
            prop_assert!(difference.estimate.is_finite() && finite(difference.interval));
        }
        let x: Vec<f64> = (0..values.len()).map(|i| i as f64).collect();
        prop_assert!(mann_kendall(&values).is_none_or(|trend| trend.z.is_finite()));
        prop_assert!(theil_sen(&x, &values, 0.95).is_none_or(|line| line.slope.is_finite()));
        prop_assert!(ols(&x, &values).is_none_or(|line| line.slope.is_finite() && line.slope_error.is_finite()));
        prop_assert!(autocorrelations(&values, 1).is_none_or(|r| r.iter().all(|r| r.is_finite())));
        prop_assert!(effective_sample_size(&values).is_none_or(f64::is_finite));
        prop_assert!(gap_cv2(&values).is_none_or(f64::is_finite));
    }
}
