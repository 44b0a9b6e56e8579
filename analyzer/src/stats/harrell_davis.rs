//! Quantile estimators that are smooth in the data: Harrell-Davis, with the Maritz-Jarrett standard error.

use super::incomplete_beta::beta_cdf;

/// Harrell-Davis estimate and the spread of its weights (Harrell and Davis, Biometrika 69:635, 1982).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HarrellDavis {
    /// Weighted mean of all order statistics.
    pub estimate: f64,
    /// Variance of the sample under the same weights, in squared units of the data.
    pub variance: f64,
}

/// Estimates the `p` quantile of an ascending sample.
///
/// `None` for an empty sample, or when `p` is not strictly between 0 and 1.
#[must_use]
pub fn harrell_davis(sorted: &[f64], p: f64) -> Option<HarrellDavis> {
    if sorted.is_empty() || !(p > 0.0 && p < 1.0) {
        return None;
    }
    let scale = (sorted.len() + 1) as f64;
    let weights = steps(sorted.len(), scale * p, scale * (1.0 - p))?;
    let estimate = dot(&weights, sorted);
    let squares = weights.iter().zip(sorted).map(|(w, value)| w * (value - estimate).powi(2));
    Some(HarrellDavis { estimate, variance: squares.sum() })
}

/// Standard error of the sample quantile after Maritz and Jarrett (JASA 73:194, 1978).
///
/// `None` below three values, or so near an end that the beta law of the order statistic is improper.
#[must_use]
pub fn maritz_jarrett(sorted: &[f64], p: f64) -> Option<f64> {
    let n = sorted.len();
    let rank = (n as f64 * p + 0.5).floor();
    let (a, b) = (rank - 1.0, n as f64 - rank);
    if n < 3 || a <= 0.0 || b <= 0.0 {
        return None;
    }
    let weights = steps(n, a, b)?;
    let second: f64 =
        weights.iter().zip(sorted).map(|(weight, value)| weight * value * value).sum();
    Some((second - dot(&weights, sorted).powi(2)).max(0.0).sqrt())
}

fn dot(weights: &[f64], values: &[f64]) -> f64 {
    weights.iter().zip(values).map(|(weight, value)| weight * value).sum()
}

/// Increments of the Beta(a, b) distribution over `n` equal steps.
fn steps(n: usize, a: f64, b: f64) -> Option<Vec<f64>> {
    let cdf = |i: usize| beta_cdf(i as f64 / n as f64, a, b);
    (0..n).map(|i| Some(cdf(i + 1)? - cdf(i)?)).collect()
}
