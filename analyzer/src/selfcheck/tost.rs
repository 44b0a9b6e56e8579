//! Equivalence: the 90 % interval for an alpha of 0.05, strict at the margin, and no parity without power.

use super::vector::{list, number, numbers, vector};
use super::{Check, close, equal};
use crate::stats::{
    Counts, Design, Equivalence, HalfWidth, Margin, TostMethod, tost_newcombe, tost_paired,
    tost_power, tost_repetitions, tost_welch,
};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = means();
    checks.extend(proportions());
    checks.extend(power());
    checks.extend(words());
    checks
}

fn unknown() -> HalfWidth {
    HalfWidth::NotAttainable { reason: "no baseline".to_owned() }
}

fn means() -> Vec<Check> {
    let vector = vector("tost_means");
    let (a, b) = (numbers(&vector["input"]["A"]), numbers(&vector["input"]["B"]));
    let alpha = number(&vector["input"]["alpha"]);
    let mut checks = Vec::new();
    for case in list(&vector["expected"]) {
        let margin = Margin { delta: number(&case["delta"]), alpha };
        for (key, test) in [
            ("welch", tost_welch(&a, &b, margin, &unknown())),
            ("paired", tost_paired(&a, &b, margin, &unknown())),
        ] {
            let name = |what: &str| format!("{key} at delta {}: {what}", margin.delta);
            let ends = test.interval.ends();
            let wanted = numbers(&case[format!("{key}_ci90")]);
            checks.push(close(name("p"), test.p_value(), number(&case[format!("{key}_p")]), 1e-9));
            for (what, end, at) in [("low", ends.map(|e| e.0), 0), ("high", ends.map(|e| e.1), 1)] {
                let wanted = wanted.get(at).copied().unwrap_or(f64::NAN);
                checks.push(close(name(what), end, wanted, 1e-9));
            }
            let equivalent = Some(test.outcome == Equivalence::Equivalent);
            let wanted = case[format!("{key}_equiv")].as_bool();
            checks.push(equal(name("equivalent"), &equivalent, &wanted));
        }
    }
    checks
}

fn proportions() -> Vec<Check> {
    let vector = vector("tost_proportions");
    let alpha = number(&vector["input"]["alpha"]);
    let counts = |case: &serde_json::Value, good: &str, attempted: &str| Counts {
        good: super::vector::count(&case[good]),
        attempted: super::vector::count(&case[attempted]),
    };
    let check = |case: &serde_json::Value| {
        let margin = Margin { delta: number(&case["delta"]), alpha };
        let test = tost_newcombe(counts(case, "k2", "n2"), counts(case, "k1", "n1"), margin);
        let wanted = case["newcombe_equiv"].as_bool();
        let name = format!("Newcombe of {} against {}", case["k1"], case["k2"]);
        equal(name, &Some(test.outcome == Equivalence::Equivalent), &wanted)
    };
    list(&vector["expected"]).iter().map(check).collect()
}

fn power() -> Vec<Check> {
    let vector = vector("tost_power_true_diff_zero");
    let alpha = number(&vector["input"]["alpha"]);
    let check = |case: &serde_json::Value| {
        let n = u32::try_from(super::vector::count(&case["n"])).unwrap_or_default();
        let (sd, delta) = (number(&case["sd"]), number(&case["delta"]));
        let actual = tost_power(Design::TwoSample, n, sd, delta, alpha, 0.0);
        close(
            format!("power, {n} repetitions, delta {delta}"),
            actual,
            number(&case["power"]),
            1e-6,
        )
    };
    list(&vector["expected"]).iter().map(check).collect()
}

fn words() -> Vec<Check> {
    let (a, b) = ([0.90, 0.95, 0.88, 0.93, 0.91], [0.85, 0.97, 0.80, 0.92, 0.86]);
    let narrow = Margin { delta: 0.01, alpha: 0.05 };
    let known = HalfWidth::Value { half_width: 0.05 };
    let underpowered = tost_welch(&a, &b, narrow, &known).outcome;
    let flat = [Counts { good: 100, attempted: 100 }; 5];
    let margin = Margin { delta: 0.02, alpha: 0.05 };
    let fallback = tost_repetitions(&flat, &flat, TostMethod::Welch, margin, &unknown());
    let edge = fallback.interval.ends().map_or(f64::NAN, |(low, high)| high.max(-low));
    let at_edge = Margin { delta: edge, alpha: 0.05 };
    let strict = tost_repetitions(&flat, &flat, TostMethod::Welch, at_edge, &unknown()).outcome;
    vec![
        equal(
            "a margin below what is resolvable",
            &underpowered,
            &Equivalence::InconclusiveUnderpowered,
        ),
        equal("no variance: pooled counts, with a note", &fallback.note.is_some(), &true),
        equal("an interval that touches the margin", &(strict == Equivalence::Equivalent), &false),
        close("alpha 0.05 takes the 90 % interval", Some(margin.confidence()), 0.9, 1e-12),
    ]
}
