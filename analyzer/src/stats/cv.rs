//! Coefficient of variation of the good-fraction over repetitions: the methodology's stability gate.

use serde::{Deserialize, Serialize};

use super::Interval;
use super::distribution::{chi2_quantile, upper_tail};
use super::moments::moments;

/// sd / mean, or why it does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Cv {
    /// Defined.
    Value {
        /// sd (ddof 1) / mean.
        cv: f64,
    },
    /// The mean is zero: no ratio exists, and the gate must not pass.
    ZeroMean,
    /// Fewer than two repetitions.
    TooFew,
}

impl Cv {
    /// True when the ratio exists and does not exceed `bound`.
    #[must_use]
    pub fn within(self, bound: f64) -> bool {
        matches!(self, Self::Value { cv } if cv <= bound)
    }

    /// The ratio, when it exists.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        match self {
            Self::Value { cv } => Some(cv),
            Self::ZeroMean | Self::TooFew => None,
        }
    }
}

/// Coefficient of variation with n-1 in the standard deviation.
#[must_use]
pub fn cv(values: &[f64]) -> Cv {
    match moments(values).map(|summary| (summary.mean, summary.sd)) {
        Some((0.0, Some(_))) => Cv::ZeroMean,
        Some((mean, Some(sd))) if (sd / mean).is_finite() => Cv::Value { cv: sd / mean.abs() },
        _ => Cv::TooFew,
    }
}

/// The CV that binomial noise alone gives, sqrt((1-p) / (p n)): a bound below it can never be met by
/// more repetitions, only by more requests in each. `None` where it is undefined.
#[must_use]
pub fn cv_binomial_floor(p: f64, requests: u64) -> Option<f64> {
    (p > 0.0 && p <= 1.0 && requests > 0).then(|| ((1.0 - p) / (p * requests as f64)).sqrt())
}

/// The ratio corrected for small samples: (1 + 1/(4n)) cv (Sokal and Rohlf).
#[must_use]
pub fn cv_small_sample(values: &[f64]) -> Option<f64> {
    cv(values).value().map(|cv| (1.0 + 0.25 / values.len() as f64) * cv)
}

/// Interval of a standard deviation of normal values, sqrt((n-1) s^2 / chi2).
#[must_use]
pub fn sd_interval(values: &[f64], confidence: f64) -> Interval {
    let too_few = Interval::TooFew { have: values.len(), need: 2 };
    let Some(sd) = moments(values).and_then(|summary| summary.sd) else { return too_few };
    if sd == 0.0 {
        return no_spread();
    }
    let (df, upper) = ((values.len() - 1) as f64, upper_tail(confidence));
    match (chi2_quantile(upper, df), chi2_quantile(1.0 - upper, df)) {
        (Some(high), Some(low)) => Interval::Interval {
            low: sd * (df / high).sqrt(),
            high: sd * (df / low).sqrt(),
            confidence,
        },
        _ => Interval::Degenerate { reason: format!("no confidence of {confidence}") },
    }
}

/// Vangel's interval of a CV (Am. Stat. 50:21, 1996). It is wide: about 0.6 to 2.9 times the CV at five values,
/// so that a CV near its bound says little.
#[must_use]
pub fn cv_interval(values: &[f64], confidence: f64) -> Interval {
    let ratio = match cv(values) {
        Cv::Value { cv } if cv > 0.0 => cv,
        Cv::Value { .. } => return no_spread(),
        Cv::ZeroMean => return Interval::Degenerate { reason: "the mean is 0".to_owned() },
        Cv::TooFew => return Interval::TooFew { have: values.len(), need: 2 },
    };
    let (df, upper) = ((values.len() - 1) as f64, upper_tail(confidence));
    let end = |p: f64| {
        let chi2 = chi2_quantile(p, df)?;
        let scale = ((chi2 + 2.0) / (df + 1.0) - 1.0) * ratio * ratio + chi2 / df;
        (scale > 0.0).then(|| ratio / scale.sqrt())
    };
    match (end(upper), end(1.0 - upper)) {
        (Some(low), Some(high)) => Interval::Interval { low, high, confidence },
        _ => Interval::Degenerate { reason: "the CV is unbounded above at this n".to_owned() },
    }
}

fn no_spread() -> Interval {
    Interval::Degenerate { reason: "no variance between repetitions".to_owned() }
}
