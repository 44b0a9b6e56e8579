//! Small-sample statistics over repetitions, and closed forms over requests. Outcomes are types: no function
//! here returns NaN or an infinity.
//!
//! The repetition is the unit of inference. What is published is the t interval with G-1 degrees of
//! freedom; the bootstrap intervals that the methodology names are computed beside it under their own names.
//! Exact and closed forms come before resampling: only a mean of latencies within one run draws numbers.

mod acceleration;
mod arrivals;
mod autocorrelation;
mod block;
mod bootstrap;
pub mod calibration;
mod cluster_bootstrap;
mod cluster_robust;
mod cv;
mod difference;
mod distribution;
mod harrell_davis;
mod incomplete_beta;
mod isotonic;
mod knee;
mod knee_bootstrap;
mod law;
mod mann_kendall;
mod mean_bca;
mod moments;
mod mser;
mod multiplicity;
mod multiset;
mod noise;
mod overdispersion;
mod paired_proportion;
mod permutation;
mod power;
mod proportion;
mod quantile;
mod quantile_interval;
mod slope;
mod t_interval;
mod tost;

pub use acceleration::{acceleration, acceleration_of_mean, acceleration_two_sample};
pub use arrivals::{DispersionTest, dispersion_test, fano_factor, gap_cv2};
pub use autocorrelation::{
    LjungBox, autocorrelations, effective_sample_size, ljung_box, von_neumann_ratio,
};
pub use block::{BlockLength, circular_block_variance, optimal_block_length};
pub use bootstrap::{Bootstrap, Correction};
pub use cluster_bootstrap::{cluster_bootstrap, expanded_percentile, expanded_tail};
pub use cluster_robust::{ClusterRobust, RobustError, cluster_robust};
pub use cv::{Cv, cv, cv_binomial_floor, cv_interval, cv_small_sample, sd_interval};
pub use difference::{Difference, paired, welch};
pub use distribution::{chi2_quantile, chi2_upper, normal_cdf, normal_quantile, t_cdf, t_quantile};
pub use harrell_davis::{HarrellDavis, harrell_davis, maritz_jarrett};
pub use incomplete_beta::{beta_cdf, beta_quantile, binomial_cdf};
pub use isotonic::{is_decreasing, isotonic_decreasing};
pub use knee::{
    CertifiedKnee, LadderRate, LadderRung, certified_knee, knee_before_first_failure,
    knee_interpolated, knee_isotonic, knee_tested,
};
pub use knee_bootstrap::{KneeLaw, knee_bootstrap};
pub use law::Law;
pub use mann_kendall::{MannKendall, mann_kendall};
pub use mean_bca::{MEAN_RESAMPLES, mean_bca};
pub use moments::{Moments, moments};
pub use mser::{Mser, mser5};
pub use multiplicity::{bonferroni, holm, simultaneous_confidence};
pub use multiset::{MAX_ENUMERATED, multisets};
pub use noise::{HalfWidth, noise_floor_bootstrap, resolvable_difference_t};
pub use overdispersion::{
    DISPERSION_CONFIDENCE, Dispersion, DispersionWord, half_width_ratio_band, overdispersion,
};
pub use paired_proportion::{McNemar, PairedCounts, mcnemar, newcombe_paired};
pub use permutation::{ExactP, permutation_test, sign_flip_test};
pub use power::{
    Design, USUAL_POWER, difference_power, repetitions_needed, requests_needed, tost_power,
};
pub use proportion::{Counts, clopper_pearson, newcombe, wilson};
pub use quantile::{QuantileType, median, quantile, quantile_type1, quantile_type7};
pub use quantile_interval::{
    BcaRanks, QuantileInterval, bca_ranks, min_n, order_statistic_cdf, order_statistic_coverage,
    order_statistic_ranks, percentile_ranks, quantile_acceleration,
    quantile_acceleration_jackknife, quantile_interval,
};
pub use slope::{OlsLine, TheilSen, newey_west_error, ols, theil_sen};
pub use t_interval::t_interval;
pub use tost::{
    Equivalence, Margin, Tost, TostMethod, tost_newcombe, tost_paired, tost_repetitions, tost_welch,
};

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
mod edge_cases;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod wild;
