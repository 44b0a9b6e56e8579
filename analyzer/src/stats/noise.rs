//! The smallest difference a set of baseline repetitions can resolve, both ways of putting it.

use serde::{Deserialize, Serialize};

use super::Interval;
use super::t_interval::t_interval;

/// Above this many repetitions the enumeration would hold more than 1.35 million multisets.
const MAX_ENUMERATED: usize = 12;

/// A half width, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum HalfWidth {
    /// Defined.
    Value {
        /// Half the width of the interval, in the unit of the data.
        half_width: f64,
    },
    /// Not defined for this number of repetitions.
    NotAttainable {
        /// Why, in words.
        reason: String,
    },
}

/// Half width of the percentile bootstrap interval (type 7) of the mean, over every resample.
///
/// All G^G resamples are counted through their multisets, so there are no draws and no seed. It
/// understates what can be resolved (0.61 of the t half width at five repetitions, 0.32 at three),
/// hence [`resolvable_difference_t`] beside it.
#[must_use]
pub fn noise_floor_bootstrap(values: &[f64], confidence: f64) -> HalfWidth {
    if values.len() < 2 || values.len() > MAX_ENUMERATED {
        let reason = format!("{} repetitions; 2 to {MAX_ENUMERATED} are enumerated", values.len());
        return HalfWidth::NotAttainable { reason };
    }
    let means = weighted_means(values);
    let tail = (1.0 - confidence) / 2.0;
    match (weighted_type7(&means, tail), weighted_type7(&means, 1.0 - tail)) {
        (Some(low), Some(high)) => HalfWidth::Value { half_width: (high - low) / 2.0 },
        _ => HalfWidth::NotAttainable { reason: "no resamples".to_owned() },
    }
}

/// sqrt(2) x the t half width of the mean: the difference of two arms that are equally noisy.
#[must_use]
pub fn resolvable_difference_t(values: &[f64], confidence: f64) -> HalfWidth {
    match t_interval(values, confidence) {
        Interval::Interval { low, high, .. } => {
            HalfWidth::Value { half_width: (high - low) / 2.0 * std::f64::consts::SQRT_2 }
        }
        Interval::Degenerate { reason } => HalfWidth::NotAttainable { reason },
        Interval::TooFew { have, need } => {
            HalfWidth::NotAttainable { reason: format!("{have} repetitions, {need} needed") }
        }
    }
}

/// Every distinct resample mean with the number of ordered resamples that give it, ascending.
fn weighted_means(values: &[f64]) -> Vec<(f64, u64)> {
    let factorial: Vec<u64> = (0..=values.len() as u64)
        .scan(1, |product, i| {
            *product *= i.max(1);
            Some(*product)
        })
        .collect();
    let mut means = Vec::new();
    let start = Partial { sum: 0.0, left: values.len(), weight: factorial[values.len()] };
    descend(values, &factorial, start, &mut means);
    means.sort_by(|a, b| a.0.total_cmp(&b.0));
    means
}

/// A multiset under construction: how much it sums to, how many draws are left, orderings so far.
#[derive(Clone, Copy)]
struct Partial {
    sum: f64,
    left: usize,
    weight: u64,
}

fn descend(rest: &[f64], factorial: &[u64], at: Partial, means: &mut Vec<(f64, u64)>) {
    let [value, tail @ ..] = rest else { return };
    let total = factorial.len() - 1;
    if tail.is_empty() {
        let sum = at.sum + value * at.left as f64;
        means.push((sum / total as f64, at.weight / factorial[at.left]));
        return;
    }
    for copies in 0..=at.left {
        let next = Partial {
            sum: at.sum + value * copies as f64,
            left: at.left - copies,
            weight: at.weight / factorial[copies],
        };
        descend(tail, factorial, next, means);
    }
}

/// Type 7 quantile of a sample given as (value, multiplicity), ascending.
fn weighted_type7(sorted: &[(f64, u64)], p: f64) -> Option<f64> {
    let total: u64 = sorted.iter().map(|(_, weight)| weight).sum();
    let position = total.checked_sub(1)? as f64 * p;
    let below = value_at(sorted, position.floor())?;
    let above = value_at(sorted, position.ceil())?;
    Some(below + (above - below) * position.fract())
}

fn value_at(sorted: &[(f64, u64)], rank: f64) -> Option<f64> {
    let mut seen = 0.0;
    for (value, weight) in sorted {
        seen += *weight as f64;
        if rank < seen {
            return Some(*value);
        }
    }
    None
}
