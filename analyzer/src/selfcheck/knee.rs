//! The knee is the highest tested rate that meets the target, and its uncertainty is told.

use super::vector::{count, list, number, numbers, vector};
use super::{Check, close, equal};
use crate::stats::{
    Counts, LadderRate, LadderRung, certified_knee, is_decreasing, isotonic_decreasing,
    knee_before_first_failure, knee_bootstrap, knee_interpolated, knee_isotonic, knee_tested,
};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = isotonic();
    checks.extend(non_monotone());
    checks.extend(resampled());
    checks.extend(certified());
    checks
}

/// A rung of one repetition of 1000 requests per listed share.
fn rung(rate_rps: f64, shares: &[f64]) -> LadderRung {
    let counts = |share: &f64| Counts { good: thousandths(*share), attempted: 1000 };
    LadderRung { rate_rps, repetitions: shares.iter().map(counts).collect() }
}

fn thousandths(share: f64) -> u64 {
    (0..=1000_u32)
        .find(|n| (f64::from(*n) / 1000.0 - share).abs() < 1e-9)
        .map_or(u64::MAX, u64::from)
}

fn pooled(ladder: &[LadderRung]) -> Vec<Counts> {
    ladder.iter().map(LadderRung::pooled).collect()
}

fn isotonic() -> Vec<Check> {
    let vector = vector("isotonic_decreasing_knee");
    let (input, expected) = (&vector["input"], &vector["expected"]);
    let shares = numbers(&input["good_fraction"]).into_iter().zip(list(&input["weights"]));
    let counts = shares.map(|(share, weight)| {
        let attempted = count(weight);
        Counts { good: thousandths(share) * attempted / 1000, attempted }
    });
    let ladder: Vec<LadderRung> = numbers(&input["rates"])
        .into_iter()
        .zip(counts)
        .map(|(rate_rps, counts)| LadderRung { rate_rps, repetitions: vec![counts] })
        .collect();
    let curve = isotonic_decreasing(&pooled(&ladder)).unwrap_or_default();
    let target = number(&input["target"]);
    let mut checks: Vec<Check> = numbers(&expected["iso"])
        .into_iter()
        .enumerate()
        .map(|(i, wanted)| {
            close(format!("isotonic rung {}", i + 1), curve.get(i).copied(), wanted, 1e-12)
        })
        .collect();
    let points: Vec<(f64, f64)> = numbers(&input["rates"]).into_iter().zip(curve).collect();
    let interpolated = knee_interpolated(&points, target);
    checks.push(close(
        "tested",
        knee_tested(&ladder, target).rate(),
        number(&expected["knee_last_raw_ok"]),
        0.0,
    ));
    checks.push(close(
        "isotonic",
        knee_isotonic(&ladder, target).rate(),
        number(&expected["knee_iso"]),
        0.0,
    ));
    checks.push(close(
        "interpolated",
        interpolated,
        number(&expected["knee_iso_interpolated"]),
        1e-12,
    ));
    checks
}

fn non_monotone() -> Vec<Check> {
    let vector = vector("non_monotone_ladder");
    let (input, expected) = (&vector["input"], &vector["expected"]);
    let rates = numbers(&input["rates"]).into_iter().zip(numbers(&input["good_fraction"]));
    let ladder: Vec<LadderRung> = rates.map(|(rate, share)| rung(rate, &[share])).collect();
    let target = number(&input["target"]);
    let before = knee_before_first_failure(&ladder, target).rate();
    vec![
        close(
            "not monotone: headline",
            knee_tested(&ladder, target).rate(),
            number(&expected["highest_passing_raw"]),
            0.0,
        ),
        close("not monotone: conservative", before, number(&expected["first_crossing_raw"]), 0.0),
        close(
            "not monotone: isotonic",
            knee_isotonic(&ladder, target).rate(),
            number(&expected["iso_knee"]),
            0.0,
        ),
        equal("not monotone: flagged", &is_decreasing(&pooled(&ladder)), &false),
    ]
}

fn resampled() -> Vec<Check> {
    let vector = vector("knee_cluster_bootstrap_exact");
    let ladder: Vec<LadderRung> = [2_u32, 4, 6, 8]
        .map(|rate| rung(f64::from(rate), &numbers(&vector["input"]["ladder"][rate.to_string()])))
        .to_vec();
    let law = knee_bootstrap(&ladder, number(&vector["input"]["target"]));
    let wanted = &vector["expected"]["counts_of_27"];
    let check = |(at, rate): (usize, u32)| {
        let actual = law.as_ref().and_then(|law| law.rates.get(at)).map(|(_, weight)| *weight);
        let wanted = wanted[rate.to_string()].as_u64().or(Some(0));
        equal(format!("resamples with the knee at {rate} rps"), &actual, &wanted)
    };
    [2, 4, 6, 8].into_iter().enumerate().map(check).collect()
}

fn certified() -> Vec<Check> {
    let ladder = [
        rung(2.0, &[0.97, 0.98, 0.99, 0.98, 0.97]),
        rung(4.0, &[0.85, 0.97, 0.93, 0.90, 0.91]),
        rung(6.0, &[0.50, 0.52, 0.49, 0.51, 0.50]),
    ];
    let knee = certified_knee(&ladder, 0.9, 0.95);
    let top = certified_knee(&ladder[..1], 0.9, 0.95).certified;
    let bottom = certified_knee(&ladder[2..], 0.9, 0.95).certified;
    vec![
        equal("certified knee", &knee.certified, &LadderRate::At { rate_rps: 2.0 }),
        equal("upper bracket", &knee.fails_from_rps, &Some(6.0)),
        equal("every rate holds", &top, &LadderRate::AtLeast { rate_rps: 2.0 }),
        equal("no rate holds", &bottom, &LadderRate::Below { rate_rps: 6.0 }),
        equal(
            "the target is met by reaching it",
            &knee_tested(&[rung(1.0, &[0.9])], 0.9),
            &LadderRate::AtLeast { rate_rps: 1.0 },
        ),
    ]
}
