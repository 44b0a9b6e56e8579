//! Ladders, and where they stop meeting the target.

use std::collections::BTreeMap;

use super::super::*;
use super::{Vector, number, vector_tests};

/// A whole number that the file holds as a decimal.
fn whole(value: f64) -> u64 {
    format!("{value:.0}").parse().unwrap()
}

/// A ladder of one repetition per rate with the given shares.
fn ladder(v: &Vector, attempted: &[f64]) -> Vec<LadderRung> {
    let shares = v.inputs("good_fraction").into_iter().zip(attempted);
    let counts = shares.map(|(p, n)| Counts { good: whole(p * n), attempted: whole(*n) });
    let rungs = v.inputs("rates").into_iter().zip(counts);
    rungs.map(|(rate_rps, counts)| LadderRung { rate_rps, repetitions: vec![counts] }).collect()
}

fn pooled(ladder: &[LadderRung]) -> Vec<Counts> {
    ladder.iter().map(LadderRung::pooled).collect()
}

fn blocks(curve: &[f64]) -> Vec<f64> {
    let mut starts = vec![0.0];
    for block in curve.chunk_by(|a, b| a == b) {
        starts.push(starts[starts.len() - 1] + block.len() as f64);
    }
    starts
}

vector_tests! {
    isotonic_decreasing_knee => |v| {
        let ladder = ladder(v, &v.inputs("weights"));
        let (row, target) = (v.expected(), number(v.input("target")));
        let curve = isotonic_decreasing(&pooled(&ladder)).unwrap();
        row.all_close("iso", &curve);
        row.all_close("blocks", &blocks(&curve));
        row.close("knee_last_raw_ok", knee_tested(&ladder, target).rate().unwrap());
        row.close("knee_iso", knee_isotonic(&ladder, target).rate().unwrap());
        let points: Vec<(f64, f64)> = v.inputs("rates").into_iter().zip(curve).collect();
        row.close("knee_iso_interpolated", knee_interpolated(&points, target).unwrap());
    };
    non_monotone_ladder => |v| {
        let ladder = ladder(v, &[1000.0; 4]);
        let (row, target) = (v.expected(), number(v.input("target")));
        row.all_close("iso", &isotonic_decreasing(&pooled(&ladder)).unwrap());
        row.close("highest_passing_raw", knee_tested(&ladder, target).rate().unwrap());
        let before = knee_before_first_failure(&ladder, target).rate().unwrap();
        row.close("first_crossing_raw", before);
        row.close("iso_knee", knee_isotonic(&ladder, target).rate().unwrap());
        assert!(!is_decreasing(&pooled(&ladder)), "the report must flag the ambiguity");
    };
    knee_cluster_bootstrap_exact => |v| {
        let rungs: BTreeMap<u64, Vec<f64>> = v.input("ladder").as_object().unwrap().iter()
            .map(|(rate, shares)| (rate.parse().unwrap(), super::floats(shares)))
            .collect();
        let ladder: Vec<LadderRung> = rungs.into_iter().map(|(rate, shares)| {
            let counts = |p: &f64| Counts { good: whole(p * 100.0), attempted: 100 };
            LadderRung { rate_rps: rate as f64, repetitions: shares.iter().map(counts).collect() }
        }).collect();
        let law = knee_bootstrap(&ladder, number(v.input("target"))).unwrap();
        let expected = v.expected().sub("counts_of_27");
        assert_eq!((law.total, law.below), (27, 0));
        for (rate, weight) in &law.rates {
            let wanted = match *weight {
                0 => 0.0,
                _ => expected.number(&format!("{rate}")),
            };
            assert_eq!(*weight as f64, wanted, "at {rate}");
        }
        assert_eq!(law.percentile(0.5), (Some(4.0), Some(6.0)));
    };
}
