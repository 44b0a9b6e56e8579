//! Every function against vectors made by scipy, numpy and statsmodels (tests/data, origin inside).

use serde_json::Value;

use super::*;

fn vector(id: &str) -> Value {
    let file: Value =
        serde_json::from_str(include_str!("../../tests/data/stat-vectors.json")).unwrap();
    let found = file["vectors"].as_array().unwrap().iter().find(|vector| vector["id"] == id);
    found.unwrap_or_else(|| panic!("no vector {id}")).clone()
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

#[track_caller]
fn close(actual: f64, expected: f64, tolerance: f64) {
    let scale = if expected == 0.0 { 1.0 } else { expected.abs() };
    assert!((actual - expected).abs() <= tolerance * scale, "{actual} is not {expected}");
}

#[track_caller]
fn close_ends(actual: &Interval, expected: &Value, tolerance: f64) {
    let (low, high) = actual.ends().unwrap();
    let expected = floats(expected);
    close(low, expected[0], tolerance);
    close(high, expected[1], tolerance);
}

#[test]
fn t_and_normal_quantiles() {
    for id in ["t_ppf", "t_ppf_fractional_df"] {
        let vector = vector(id);
        for (i, df) in floats(&vector["input"]["df"]).into_iter().enumerate() {
            for (j, p) in floats(&vector["input"]["p"]).into_iter().enumerate() {
                close(t_quantile(p, df).unwrap(), vector["expected"][i][j].as_f64().unwrap(), 1e-9);
            }
        }
    }
    let normal = vector("norm_ppf");
    for (p, z) in floats(&normal["input"]["p"]).iter().zip(floats(&normal["expected"])) {
        close(normal_quantile(*p).unwrap(), z, 1e-9);
    }
}

#[test]
fn t_distribution_function() {
    let vector = vector("t_cdf");
    let pairs = vector["input"]["t_df"].as_array().unwrap().clone();
    for (pair, expected) in pairs.iter().zip(floats(&vector["expected"])) {
        let pair = floats(pair);
        close(t_cdf(pair[0], pair[1]).unwrap(), expected, 1e-9);
    }
}

#[test]
fn quantiles_outside_their_domain_are_none() {
    assert_eq!(t_quantile(0.0, 4.0), None);
    assert_eq!(t_quantile(0.5, 0.0), None);
    assert_eq!(t_quantile(f64::NAN, 4.0), None);
    assert_eq!(normal_quantile(1.0), None);
    assert_eq!(quantile_type1::<u64>(&[], 0.5), None);
    assert_eq!(quantile_type7(&[1.0], 1.5), None);
}

#[test]
fn noise_floor_and_t_interval() {
    for case in vector("noise_floor_boot_vs_t")["expected"].as_array().unwrap() {
        let reps = floats(&case["reps"]);
        let summary = moments(&reps).unwrap();
        close(summary.mean, case["mean"].as_f64().unwrap(), 1e-12);
        close(summary.sd.unwrap(), case["sd"].as_f64().unwrap(), 1e-9);
        let half = t_interval(&reps, 0.95).half_width().unwrap();
        close(half, case["t_half_width"].as_f64().unwrap(), 1e-9);
        let expected = case["boot_half_width_type7"].as_f64().unwrap();
        let HalfWidth::Value { half_width } = noise_floor_bootstrap(&reps, 0.95) else {
            panic!("no noise floor for {reps:?}");
        };
        close(half_width, expected, 1e-9);
        let HalfWidth::Value { half_width } = resolvable_difference_t(&reps, 0.95) else {
            panic!("no resolvable difference for {reps:?}");
        };
        close(half_width, half * 2.0_f64.sqrt(), 1e-12);
    }
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
fn welch_and_paired_differences() {
    let vector = vector("two_arm_rep_level");
    let share = |key: &str| -> Vec<f64> {
        floats(&vector["input"][key]).iter().map(|good| good / 100.0).collect()
    };
    let (a, b) = (share("good_A"), share("good_B"));
    let expected = &vector["expected"];
    let unpaired = welch(&a, &b, 0.95).unwrap();
    close(unpaired.estimate, expected["diff_B_minus_A"].as_f64().unwrap(), 1e-9);
    close(unpaired.standard_error.unwrap(), expected["welch_se"].as_f64().unwrap(), 1e-9);
    close(unpaired.df.unwrap(), expected["welch_df"].as_f64().unwrap(), 1e-9);
    close(unpaired.p_value.unwrap(), expected["welch_p"].as_f64().unwrap(), 1e-9);
    close_ends(&unpaired.interval, &expected["welch_ci"], 1e-9);
    let blocked = paired(&a, &b, 0.95).unwrap();
    close(blocked.p_value.unwrap(), expected["paired_p"].as_f64().unwrap(), 1e-9);
    close_ends(&blocked.interval, &expected["paired_ci"], 1e-9);
}

#[test]
fn the_ninety_percent_welch_interval_is_the_one_tost_uses() {
    let vector = vector("tost_means");
    let (a, b) = (floats(&vector["input"]["A"]), floats(&vector["input"]["B"]));
    close_ends(&welch(&a, &b, 0.90).unwrap().interval, &vector["expected"][0]["welch_ci90"], 1e-9);
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
}

#[test]
fn wilson_and_newcombe() {
    for case in vector("proportion_ci")["expected"].as_array().unwrap() {
        let counts =
            Counts { good: case["k"].as_u64().unwrap(), attempted: case["n"].as_u64().unwrap() };
        close_ends(&wilson(counts, 0.95), &case["wilson"], 1e-9);
    }
    for case in vector("newcombe_diff_ci")["expected"].as_array().unwrap() {
        let count = |k: &str, n: &str| Counts {
            good: case[k].as_u64().unwrap(),
            attempted: case[n].as_u64().unwrap(),
        };
        // The vectors hold arm 1 minus arm 2; `newcombe` gives its second argument minus the first.
        let interval = newcombe(count("k2", "n2"), count("k1", "n1"), 0.95);
        close_ends(&interval, &case["newcomb"], 1e-9);
    }
    assert_eq!(wilson(Counts::default(), 0.95), Interval::TooFew { have: 0, need: 1 });
}

#[test]
fn quantiles_of_both_types() {
    let vector = vector("quantile_types_1_to_9");
    let data = floats(&vector["input"]["data"]);
    for (i, p) in floats(&vector["input"]["p"]).into_iter().enumerate() {
        let type1 = vector["expected"]["type1_inverted_cdf"][i].as_f64().unwrap();
        close(quantile_type1(&data, p).unwrap(), type1, 1e-12);
        let type7 = vector["expected"]["type7_linear"][i].as_f64().unwrap();
        close(quantile_type7(&data, p).unwrap(), type7, 1e-12);
    }
}

#[test]
fn coefficient_of_variation() {
    for case in vector("cv_pitfalls")["expected"].as_array().unwrap() {
        let values = floats(&case["values"]);
        match case["cv"].as_f64() {
            Some(expected) => close(cv(&values).value().unwrap(), expected, 1e-9),
            None => {
                assert_eq!(cv(&values), Cv::ZeroMean);
                assert!(!cv(&values).within(10.0), "an undefined ratio must never pass the gate");
            }
        }
    }
    let floor = vector("cv_binomial_floor");
    for (i, p) in floats(&floor["input"]["p"]).into_iter().enumerate() {
        for (j, n) in floor["input"]["n"].as_array().unwrap().iter().enumerate() {
            let expected = floor["expected"][i][j].as_f64().unwrap();
            close(cv_binomial_floor(p, n.as_u64().unwrap()).unwrap(), expected, 1e-9);
        }
    }
}
