//! Quantiles of the t and the normal distribution, from `statrs`.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Quantile of Student's t with `df` degrees of freedom, which Welch makes fractional.
///
/// `None` unless `df` is positive and finite and `p` lies strictly between 0 and 1.
#[must_use]
pub fn t_quantile(p: f64, df: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0 && df.is_finite()) {
        return None;
    }
    StudentsT::new(0.0, 1.0, df).ok().map(|t| t.inverse_cdf(p))
}

/// P(T <= t) of Student's t with `df` degrees of freedom; `None` on a non-finite argument.
#[must_use]
pub fn t_cdf(t: f64, df: f64) -> Option<f64> {
    if !t.is_finite() || !df.is_finite() {
        return None;
    }
    StudentsT::new(0.0, 1.0, df).ok().map(|distribution| distribution.cdf(t))
}

/// Quantile of the standard normal; `None` unless `p` lies strictly between 0 and 1.
#[must_use]
pub fn normal_quantile(p: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    Normal::new(0.0, 1.0).ok().map(|normal| normal.inverse_cdf(p))
}

/// The upper critical probability of a two-sided interval: 0.975 for a confidence of 0.95.
pub(super) fn upper_tail(confidence: f64) -> f64 {
    1.0 - (1.0 - confidence) / 2.0
}
