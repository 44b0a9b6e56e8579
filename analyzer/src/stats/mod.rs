//! Small-sample statistics over repetitions. Outcomes are types: no function here returns NaN.
//!
//! The repetition is the unit of inference. What is published is the t interval with G-1 degrees of
//! freedom; the bootstrap noise floor the methodology names is computed beside it under its own name.

mod cv;
mod difference;
mod distribution;
mod moments;
mod noise;
mod proportion;
mod quantile;
mod t_interval;

pub use cv::{Cv, cv, cv_binomial_floor};
pub use difference::{Difference, paired, welch};
pub use distribution::{normal_quantile, t_cdf, t_quantile};
pub use moments::{Moments, moments};
pub use noise::{HalfWidth, noise_floor_bootstrap, resolvable_difference_t};
pub use proportion::{Counts, newcombe, wilson};
pub use quantile::{quantile_type1, quantile_type7};
pub use t_interval::t_interval;

use serde::{Deserialize, Serialize};

/// A two-sided interval, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Interval {
    /// Both ends exist.
    Interval {
        /// Lower end, in the unit of the data.
        low: f64,
        /// Upper end, in the unit of the data.
        high: f64,
        /// Two-sided confidence, for example 0.95.
        confidence: f64,
    },
    /// The data leave the interval undefined (no variance between repetitions).
    Degenerate {
        /// Why, in words.
        reason: String,
    },
    /// Fewer values than the method needs.
    TooFew {
        /// Values at hand.
        have: usize,
        /// Values needed.
        need: usize,
    },
}

impl Interval {
    /// Both ends, when they exist.
    #[must_use]
    pub fn ends(&self) -> Option<(f64, f64)> {
        match self {
            Self::Interval { low, high, .. } => Some((*low, *high)),
            Self::Degenerate { .. } | Self::TooFew { .. } => None,
        }
    }

    /// Half the width, when both ends exist.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        self.ends().map(|(low, high)| (high - low) / 2.0)
    }
}

#[cfg(test)]
mod vectors;
