//! An arm against the floor at one rate.

use serde::{Deserialize, Serialize};

use super::ArmAnalysis;
use super::cell::CellAnalysis;
use super::equivalence::{EquivalenceTest, equivalence};
use crate::campaign::{Campaign, Comparison as Method};
use crate::stats::{
    Difference, Interval, holm, newcombe, paired, permutation_test, sign_flip_test, welch,
};

/// What the difference says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole interval is above 0.
    Win,
    /// The whole interval is below 0.
    Loss,
    /// The interval holds 0. Not a claim of parity.
    Inconclusive,
    /// Too few valid repetitions for an interval.
    NotComparable,
}

/// Exact p of a difference over relabellings of the repetitions (sign flips when paired): a check that assumes
/// only that repetitions could be exchanged. The outcome is read from the interval, not from it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PermutationP {
    /// Two-sided.
    pub p: f64,
    /// The same, adjusted (Holm) for every comparison of the campaign.
    pub holm_p: f64,
    /// Smallest p that so many repetitions can give.
    pub attainable: f64,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The arm.
    pub arm: String,
    /// The floor arm.
    pub floor: String,
    /// Offered rate, requests per second.
    pub rate_rps: f64,
    /// `welch` or `paired`, as pre-registered.
    pub method: Method,
    /// Arm minus floor in good-fraction, over repetitions.
    pub difference: Option<Difference>,
    /// Newcombe's interval over pooled requests, used only when no repetition varies in either arm.
    pub pooled_interval: Interval,
    /// Which interval the outcome is read from: `repetitions` or `pooled`.
    pub read_from: String,
    /// What it says.
    pub outcome: Outcome,
    /// A check without assumptions; nothing when an arm has no valid repetition.
    pub permutation: Option<PermutationP>,
    /// Equivalence within the registered margin; nothing when none is registered. A difference can be a win and
    /// equivalent: real, and too small to matter.
    pub equivalence: Option<EquivalenceTest>,
}

pub(super) fn all(
    campaign: &Campaign,
    floor: &ArmAnalysis,
    arms: &[ArmAnalysis],
) -> Vec<Comparison> {
    let others = arms.iter().filter(|arm| !arm.floor);
    let all = others.flat_map(|arm| {
        let cells = arm.cells.iter().zip(&floor.cells);
        cells.map(move |(cell, base)| one(campaign, (arm, cell), (floor, base)))
    });
    adjusted(all.collect())
}

/// Every comparison counts as tried.
fn adjusted(mut comparisons: Vec<Comparison>) -> Vec<Comparison> {
    let raw: Vec<f64> =
        comparisons.iter().filter_map(|it| it.permutation).map(|exact| exact.p).collect();
    let tested = comparisons.iter_mut().filter_map(|it| it.permutation.as_mut());
    tested.zip(holm(&raw)).for_each(|(exact, p)| exact.holm_p = p);
    comparisons
}

fn permutation(method: Method, base: &CellAnalysis, cell: &CellAnalysis) -> Option<PermutationP> {
    let exact = match method {
        Method::Welch => permutation_test(&base.valid_fractions(), &cell.valid_fractions()),
        Method::Paired => {
            let (a, b) = pairs(base, cell);
            sign_flip_test(&a.iter().zip(&b).map(|(a, b)| b - a).collect::<Vec<_>>())
        }
    }?;
    Some(PermutationP { p: exact.p, holm_p: exact.p, attainable: exact.attainable })
}

fn one(
    campaign: &Campaign,
    (arm, cell): (&ArmAnalysis, &CellAnalysis),
    (floor, base): (&ArmAnalysis, &CellAnalysis),
) -> Comparison {
    let statistics = &campaign.keys().statistics;
    let difference = match statistics.comparison {
        Method::Welch => {
            welch(&base.valid_fractions(), &cell.valid_fractions(), statistics.confidence)
        }
        Method::Paired => {
            let (a, b) = pairs(base, cell);
            paired(&a, &b, statistics.confidence)
        }
    };
    let pooled_interval = newcombe(base.counts, cell.counts, statistics.confidence);
    let degenerate = matches!(
        difference.as_ref().map(|difference| &difference.interval),
        Some(Interval::Degenerate { .. })
    );
    let interval = match degenerate {
        true => Some(&pooled_interval),
        false => difference.as_ref().map(|difference| &difference.interval),
    };
    Comparison {
        arm: arm.name.clone(),
        floor: floor.name.clone(),
        rate_rps: cell.rate_rps,
        method: statistics.comparison,
        outcome: outcome(interval.and_then(Interval::ends)),
        read_from: if degenerate { "pooled" } else { "repetitions" }.to_owned(),
        difference,
        pooled_interval,
        permutation: permutation(statistics.comparison, base, cell),
        equivalence: equivalence(statistics, base, cell),
    }
}

/// Repetitions that are valid in both arms, as blocks.
fn pairs(base: &CellAnalysis, cell: &CellAnalysis) -> (Vec<f64>, Vec<f64>) {
    let blocks = base.valid_repetitions().filter_map(|first| {
        let second = cell.valid_repetitions().find(|rep| rep.repetition == first.repetition)?;
        Some((first.counts.fraction()?, second.counts.fraction()?))
    });
    blocks.unzip()
}

fn outcome(ends: Option<(f64, f64)>) -> Outcome {
    match ends {
        Some((low, _)) if low > 0.0 => Outcome::Win,
        Some((_, high)) if high < 0.0 => Outcome::Loss,
        Some(_) => Outcome::Inconclusive,
        None => Outcome::NotComparable,
    }
}
