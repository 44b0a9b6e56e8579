//! Difference of two arms over repetitions: Welch (unpaired) or t on per-block differences (paired).

use serde::{Deserialize, Serialize};

use super::Interval;
use super::distribution::{t_cdf, t_quantile, upper_tail};
use super::moments::{Moments, moments};

/// A difference of means with its uncertainty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Second sample's mean minus the first one's.
    pub estimate: f64,
    /// Standard error of the estimate; `None` when a sample holds fewer than two values.
    pub standard_error: Option<f64>,
    /// Degrees of freedom: Welch-Satterthwaite, or pairs minus one.
    pub df: Option<f64>,
    /// Two-sided interval of the difference.
    pub interval: Interval,
    /// Two-sided p of no difference; `None` where the t statistic is undefined.
    pub p_value: Option<f64>,
}

/// `b` minus `a` without assuming equal variances. `None` when a sample is empty.
#[must_use]
pub fn welch(a: &[f64], b: &[f64], confidence: f64) -> Option<Difference> {
    let (first, second) = (moments(a)?, moments(b)?);
    let estimate = second.mean - first.mean;
    let (Some(error_a), Some(error_b)) = (first.standard_error(), second.standard_error()) else {
        let have = first.n.min(second.n);
        return Some(without_error(estimate, Interval::TooFew { have, need: 2 }));
    };
    let variance = error_a.powi(2) + error_b.powi(2);
    if variance == 0.0 {
        return Some(without_error(estimate, no_variance()));
    }
    let denominator =
        error_a.powi(4) / (first.n - 1) as f64 + error_b.powi(4) / (second.n - 1) as f64;
    Some(from_error(estimate, variance.sqrt(), variance.powi(2) / denominator, confidence))
}

/// Mean of `b[i] - a[i]`: only for repetitions that ran in the same randomised block.
///
/// `None` when the samples are empty or of different length.
#[must_use]
pub fn paired(a: &[f64], b: &[f64], confidence: f64) -> Option<Difference> {
    if a.len() != b.len() {
        return None;
    }
    let differences: Vec<f64> = a.iter().zip(b).map(|(first, second)| second - first).collect();
    let Moments { n, mean, .. } = moments(&differences)?;
    let Some(error) = moments(&differences)?.standard_error() else {
        return Some(without_error(mean, Interval::TooFew { have: n, need: 2 }));
    };
    if error == 0.0 {
        return Some(without_error(mean, no_variance()));
    }
    Some(from_error(mean, error, (n - 1) as f64, confidence))
}

fn no_variance() -> Interval {
    Interval::Degenerate { reason: "no variance between repetitions in either arm".to_owned() }
}

fn without_error(estimate: f64, interval: Interval) -> Difference {
    Difference { estimate, standard_error: None, df: None, interval, p_value: None }
}

fn from_error(estimate: f64, error: f64, df: f64, confidence: f64) -> Difference {
    let interval = match t_quantile(upper_tail(confidence), df) {
        Some(t) => {
            Interval::Interval { low: estimate - t * error, high: estimate + t * error, confidence }
        }
        None => {
            Interval::Degenerate { reason: format!("no t quantile at {df} degrees of freedom") }
        }
    };
    let p_value = t_cdf(-(estimate / error).abs(), df).map(|tail| 2.0 * tail);
    Difference { estimate, standard_error: Some(error), df: Some(df), interval, p_value }
}
