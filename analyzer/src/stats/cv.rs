//! Coefficient of variation of the good-fraction over repetitions: the methodology's stability gate.

use serde::{Deserialize, Serialize};

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
        Some((mean, Some(sd))) => Cv::Value { cv: sd / mean.abs() },
        _ => Cv::TooFew,
    }
}

/// The CV that binomial noise alone gives, sqrt((1-p) / (p n)): a bound below it can never be met by
/// more repetitions, only by more requests in each. `None` where it is undefined.
#[must_use]
pub fn cv_binomial_floor(p: f64, requests: u64) -> Option<f64> {
    (p > 0.0 && p <= 1.0 && requests > 0).then(|| ((1.0 - p) / (p * requests as f64)).sqrt())
}
