//! Bootstraps without draws, and the closed forms that stand for them.

use super::vector::{count, list, number, numbers, vector};
use super::{Check, close, equal};
use crate::stats::{
    Bootstrap, Counts, Interval, QuantileInterval, QuantileType, bca_ranks, cluster_bootstrap,
    order_statistic_ranks, quantile_interval,
};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for id in
        ["bca_mean_n5_exact", "bca_mean_n6_exact", "bca_median_n5_exact", "bca_median_n6_exact"]
    {
        checks.extend(enumerated(id));
    }
    checks.extend(cluster());
    checks.extend(ranks());
    checks.extend(exact_ranks());
    checks.extend(outcomes());
    checks
}

fn corrected(id: &str, boot: Option<&Bootstrap>, confidence: f64) -> Vec<Check> {
    let expected = &vector(id)["expected"];
    let correction = boot.and_then(|boot| boot.correction(confidence));
    let interval = boot.and_then(|boot| boot.bca(confidence, QuantileType::Linear).ends());
    let wanted = numbers(&expected["bca_ci_type7"]);
    let end = |at: usize| wanted.get(at).copied().unwrap_or(f64::NAN);
    let z0 = if expected["z0"].is_null() { "z0_midrank" } else { "z0" };
    let name = |what: &str| format!("{id}: {what}");
    vec![
        close(name("z0"), correction.map(|c| c.z0), number(&expected[z0]), 1e-9),
        close(
            name("acceleration"),
            correction.map(|c| c.acceleration),
            number(&expected["a"]),
            1e-9,
        ),
        close(name("lower end"), interval.map(|ends| ends.0), end(0), 1e-9),
        close(name("upper end"), interval.map(|ends| ends.1), end(1), 1e-9),
    ]
}

fn enumerated(id: &str) -> Vec<Check> {
    let input = &vector(id)["input"];
    let data = numbers(&input["data"]);
    let boot = match input["statistic"].as_str() {
        Some("median") => Bootstrap::of_median(&data),
        _ => Bootstrap::of_mean(&data),
    };
    corrected(id, boot.as_ref(), number(&input["confidence"]))
}

fn cluster() -> Vec<Check> {
    let id = "cluster_bootstrap_ratio_exact";
    let input = &vector(id)["input"];
    let pairs = list(&input["good"]).iter().zip(list(&input["attempted"]));
    let reps: Vec<Counts> = pairs
        .map(|(good, attempted)| Counts { good: count(good), attempted: count(attempted) })
        .collect();
    corrected(id, cluster_bootstrap(&reps).as_ref(), number(&input["confidence"]))
}

fn ranks() -> Vec<Check> {
    let id = "quantile_ci_analytic_ranks";
    let confidence = number(&vector(id)["input"]["confidence"]);
    let check = |case: &serde_json::Value| {
        let (n, p) = (size(&case["n"]), number(&case["p"]));
        let actual = bca_ranks(n, p, confidence).map(|bca| vec![bca.ends.0, bca.ends.1]);
        let wanted: Vec<usize> = list(&case["bca_ranks"]).iter().map(size).collect();
        equal(format!("closed-form BCa ranks of {p} of {n}"), &actual, &Some(wanted))
    };
    list(&vector(id)["expected"]).iter().map(check).collect()
}

fn exact_ranks() -> Vec<Check> {
    let id = "quantile_ci_binomial_exact";
    let confidence = number(&vector(id)["input"]["confidence"]);
    let check = |case: &serde_json::Value| {
        let (n, p) = (size(&case["n"]), number(&case["p"]));
        let actual = order_statistic_ranks(n, p, confidence);
        let as_numbers = actual.map(|(low, high)| [low, high].map(|rank| rank.map(|r| r as f64)));
        let wanted = [case["lo_rank"].as_f64(), case["hi_rank"].as_f64()];
        equal(format!("exact ranks of {p} of {n}"), &as_numbers, &Some(wanted))
    };
    list(&vector(id)["expected"]).iter().map(check).collect()
}

fn size(value: &serde_json::Value) -> usize {
    usize::try_from(count(value)).unwrap_or_default()
}

fn outcomes() -> Vec<Check> {
    let tied = Bootstrap::of_median(&[5.0, 7.0, 7.0, 7.0, 9.0]);
    let degenerate = tied.map(|boot| boot.bca(0.9, QuantileType::Linear));
    let is_degenerate = matches!(degenerate, Some(Interval::Degenerate { .. }));
    let hundred: Vec<u64> = (1..=100).collect();
    let tail = quantile_interval(&hundred, 0.99, 0.95);
    let not_attainable = QuantileInterval::NotAttainable { low: Some(97), high: None, min_n: 368 };
    vec![
        equal("a tied median is degenerate, not NaN", &is_degenerate, &true),
        equal("p99 of 100 has no upper end", &tail, &Some(not_attainable)),
    ]
}
