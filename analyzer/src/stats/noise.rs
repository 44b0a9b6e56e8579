//! The smallest difference a set of baseline repetitions can resolve, both ways of putting it.

use serde::{Deserialize, Serialize};

use super::Interval;
use super::bootstrap::Bootstrap;
use super::multiset::MAX_ENUMERATED;
use super::quantile::QuantileType;
use super::t_interval::t_interval;

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

impl HalfWidth {
    /// The half width, when it is defined.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Value { half_width } => Some(*half_width),
            Self::NotAttainable { .. } => None,
        }
    }
}

/// Half width of the percentile bootstrap interval (type 7) of the mean, over every resample.
///
/// All G^G resamples are counted through their multisets, so there are no draws and no seed. It
/// understates what can be resolved (0.61 of the t half width at five repetitions, 0.32 at three),
/// hence [`resolvable_difference_t`] beside it.
#[must_use]
pub fn noise_floor_bootstrap(values: &[f64], confidence: f64) -> HalfWidth {
    let half_width = Bootstrap::of_mean(values)
        .and_then(|bootstrap| bootstrap.percentile(confidence, QuantileType::Linear).half_width());
    match half_width {
        Some(half_width) => HalfWidth::Value { half_width },
        None => HalfWidth::NotAttainable {
            reason: format!("{} repetitions; 2 to {MAX_ENUMERATED} are enumerated", values.len()),
        },
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
