//! Closed-form intervals of proportions over pooled requests.

use serde::{Deserialize, Serialize};

use super::Interval;
use super::distribution::{normal_quantile, upper_tail};
use super::incomplete_beta::beta_quantile;

/// Good requests among attempted ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Good requests.
    pub good: u64,
    /// Attempted requests.
    pub attempted: u64,
}

impl Counts {
    /// good / attempted; `None` when nothing was attempted.
    #[must_use]
    pub fn fraction(self) -> Option<f64> {
        (self.attempted > 0).then(|| self.good as f64 / self.attempted as f64)
    }

    /// Counts of both added.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { good: self.good + other.good, attempted: self.attempted + other.attempted }
    }
}

/// Wilson's score interval, which holds at 0 and 1 where the normal one collapses.
#[must_use]
pub fn wilson(counts: Counts, confidence: f64) -> Interval {
    let (Some(p), Some(z)) = (counts.fraction(), normal_quantile(upper_tail(confidence))) else {
        return Interval::TooFew { have: 0, need: 1 };
    };
    let n = counts.attempted as f64;
    let scale = 1.0 + z * z / n;
    let centre = (p + z * z / (2.0 * n)) / scale;
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt() / scale;
    Interval::Interval { low: (centre - half).max(0.0), high: (centre + half).min(1.0), confidence }
}

/// Newcombe's hybrid score interval of `b` minus `a`: what stands in when repetitions do not vary.
#[must_use]
pub fn newcombe(a: Counts, b: Counts, confidence: f64) -> Interval {
    let (Some(pa), Some(pb)) = (a.fraction(), b.fraction()) else {
        return Interval::TooFew { have: 0, need: 1 };
    };
    let (Some((la, ua)), Some((lb, ub))) =
        (wilson(a, confidence).ends(), wilson(b, confidence).ends())
    else {
        return Interval::TooFew { have: 0, need: 1 };
    };
    let difference = pb - pa;
    Interval::Interval {
        low: difference - ((pb - lb).powi(2) + (ua - pa).powi(2)).sqrt(),
        high: difference + ((ub - pb).powi(2) + (pa - la).powi(2)).sqrt(),
        confidence,
    }
}

/// Clopper and Pearson's exact interval: at least the confidence, at the price of width.
#[must_use]
pub fn clopper_pearson(counts: Counts, confidence: f64) -> Interval {
    let Counts { good, attempted } = counts;
    if attempted == 0 || good > attempted {
        return Interval::TooFew { have: 0, need: 1 };
    }
    let (tail, bad) = (1.0 - upper_tail(confidence), attempted - good);
    let low = match good {
        0 => Some(0.0),
        _ => beta_quantile(tail, good as f64, bad as f64 + 1.0),
    };
    let high = match bad {
        0 => Some(1.0),
        _ => beta_quantile(1.0 - tail, good as f64 + 1.0, bad as f64),
    };
    match (low, high) {
        (Some(low), Some(high)) => Interval::Interval { low, high, confidence },
        _ => Interval::Degenerate { reason: format!("no confidence of {confidence}") },
    }
}
