//! The CV gate: n-1 in the standard deviation, no ratio at mean 0, and what binomial noise alone gives.

use super::vector::{count, list, number, numbers, vector};
use super::{Check, close, equal};
use crate::campaign::StatisticsKeys;
use crate::stats::{Cv, cv, cv_binomial_floor, cv_interval, moments, requests_needed, sd_interval};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = ratios();
    checks.extend(floors());
    checks.extend(gate());
    checks
}

fn ratios() -> Vec<Check> {
    let mut checks = Vec::new();
    for (i, case) in list(&vector("cv_pitfalls")["expected"]).iter().enumerate() {
        let values = numbers(&case["values"]);
        let name = |what: &str| format!("{what} of sample {}", i + 1);
        let sd = moments(&values).and_then(|summary| summary.sd);
        checks.push(close(name("sd"), sd, number(&case["sd_ddof1"]), 1e-10));
        let Some(wanted) = case["cv"].as_f64() else {
            checks.push(equal(name("CV"), &cv(&values), &Cv::ZeroMean));
            continue;
        };
        checks.push(close(name("CV"), cv(&values).value(), wanted, 1e-10));
        for (what, interval, key) in [
            ("interval of the CV", cv_interval(&values, 0.95), "cv_ci95_vangel"),
            ("interval of the sd", sd_interval(&values, 0.95), "sd_ci95"),
        ] {
            let wanted = numbers(&case[key]);
            let (low, high) = interval.ends().unzip();
            let end = |at: usize| wanted.get(at).copied().unwrap_or(f64::NAN);
            checks.push(close(name(&format!("lower end, {what},")), low, end(0), 1e-9));
            checks.push(close(name(&format!("upper end, {what},")), high, end(1), 1e-9));
        }
    }
    checks
}

fn floors() -> Vec<Check> {
    let vector = vector("cv_binomial_floor");
    let rows = numbers(&vector["input"]["p"]).into_iter().zip(list(&vector["expected"]));
    rows.flat_map(|(p, row)| {
        let sizes = list(&vector["input"]["n"]).iter().map(count).zip(numbers(row));
        sizes.map(move |(n, wanted)| {
            close(
                format!("binomial CV at {p}, {n} requests"),
                cv_binomial_floor(p, n),
                wanted,
                1e-12,
            )
        })
    })
    .collect()
}

fn gate() -> Vec<Check> {
    let bound = StatisticsKeys::default().cv_bound;
    vec![
        close("the bound", Some(bound), 0.10, 1e-12),
        equal("a CV on the bound passes", &Cv::Value { cv: 0.10 }.within(bound), &true),
        equal("a CV over the bound does not", &Cv::Value { cv: 0.100_001 }.within(bound), &false),
        equal("an undefined CV does not", &Cv::ZeroMean.within(bound), &false),
        equal("a single repetition does not", &cv(&[0.9]).within(bound), &false),
        equal("requests needed at 0.02", &requests_needed(0.02, bound), &Some(4900)),
    ]
}
