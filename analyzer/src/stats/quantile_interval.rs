//! Intervals of a quantile of independent requests, in closed form: no resampling, no jackknife.
//!
//! The bootstrap law of an order statistic is a beta distribution function, P(X*(k) <= x(j)) =
//! I_{j/n}(k, n-k+1), and the acceleration of a quantile depends on n and p only. Queueing makes requests of
//! one run dependent: call such an interval `within_run_iid` and publish the one over repetitions.

use serde::{Deserialize, Serialize};

use super::bootstrap::corrected_levels;
use super::distribution::{normal_quantile, upper_tail};
use super::incomplete_beta::{beta_cdf, binomial_cdf};
use super::quantile::{index, type1_rank};

/// Values beyond the quantile on either side before BCa covers what it says: at 1 it covers 62 %.
const MIN_BEYOND: f64 = 10.0;

/// BCa of a type 1 quantile as ranks into the sorted sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BcaRanks {
    /// 1-based rank of the quantile.
    pub rank: usize,
    /// Mid-rank bias correction.
    pub z0: f64,
    /// Acceleration.
    pub acceleration: f64,
    /// Probabilities of the two ends.
    pub levels: (f64, f64),
    /// 1-based ranks of the two ends.
    pub ends: (usize, usize),
}

/// Interval of a quantile with the method that made it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum QuantileInterval<T> {
    /// Closed-form BCa.
    Bca {
        /// Lower end.
        low: T,
        /// Upper end.
        high: T,
        /// Two-sided confidence.
        confidence: f64,
    },
    /// Exact order-statistic interval: at least the confidence, whatever the distribution.
    OrderStatistic {
        /// Lower end.
        low: T,
        /// Upper end.
        high: T,
        /// Two-sided confidence.
        confidence: f64,
    },
    /// No value of the sample bounds the quantile at this confidence on one of its sides.
    NotAttainable {
        /// Lower end, where one exists.
        low: Option<T>,
        /// Upper end, where one exists.
        high: Option<T>,
        /// Values needed for both ends.
        min_n: u64,
    },
}

impl<T: Copy> QuantileInterval<T> {
    /// Both ends, when they exist.
    #[must_use]
    pub fn ends(&self) -> Option<(T, T)> {
        match self {
            Self::Bca { low, high, .. } | Self::OrderStatistic { low, high, .. } => {
                Some((*low, *high))
            }
            Self::NotAttainable { .. } => None,
        }
    }
}

/// Interval of the type 1 quantile of an ascending sample: BCa where ten values lie beyond it on each side and
/// none ties with it, else the exact order-statistic interval.
///
/// `None` for an empty sample, or `p` or `confidence` not strictly between 0 and 1.
#[must_use]
pub fn quantile_interval<T: Copy + PartialEq>(
    sorted: &[T],
    p: f64,
    confidence: f64,
) -> Option<QuantileInterval<T>> {
    let n = sorted.len();
    let at = |rank: usize| sorted.get(rank.checked_sub(1)?).copied();
    if n as f64 * p.min(1.0 - p) >= MIN_BEYOND - 1e-9 && !tied(sorted, type1_rank(n, p)) {
        let (low, high) = bca_ranks(n, p, confidence)?.ends;
        return Some(QuantileInterval::Bca { low: at(low)?, high: at(high)?, confidence });
    }
    let (low, high) = order_statistic_ranks(n, p, confidence)?;
    match (low.and_then(at), high.and_then(at)) {
        (Some(low), Some(high)) => Some(QuantileInterval::OrderStatistic { low, high, confidence }),
        (low, high) => {
            Some(QuantileInterval::NotAttainable { low, high, min_n: min_n(p, confidence)? })
        }
    }
}

/// With an equal neighbour the quantile need not move when one value is left out: BCa is 0/0.
fn tied<T: PartialEq>(sorted: &[T], rank: usize) -> bool {
    let window = &sorted[rank.saturating_sub(2)..sorted.len().min(rank + 1)];
    window.windows(2).any(|pair| pair[0] == pair[1])
}

/// P(the bootstrap quantile of rank `rank` <= the value of rank `j`) among `n` values.
#[must_use]
pub fn order_statistic_cdf(n: usize, rank: usize, j: usize) -> Option<f64> {
    if rank == 0 || rank > n || j > n {
        return None;
    }
    beta_cdf(j as f64 / n as f64, rank as f64, (n - rank + 1) as f64)
}

/// Smallest rank that the bootstrap quantile does not exceed with probability `level`.
fn rank_at(n: usize, rank: usize, level: f64) -> Option<usize> {
    let (mut low, mut high) = (0, n);
    while low + 1 < high {
        let middle = usize::midpoint(low, high);
        match order_statistic_cdf(n, rank, middle)? >= level {
            true => high = middle,
            false => low = middle,
        }
    }
    Some(high)
}

/// Ranks of the plain percentile bootstrap interval; `None` outside the domain.
#[must_use]
pub fn percentile_ranks(n: usize, p: f64, confidence: f64) -> Option<(usize, usize)> {
    let (rank, upper) = (checked_rank(n, p)?, upper_tail(confidence));
    Some((rank_at(n, rank, 1.0 - upper)?, rank_at(n, rank, upper)?))
}

/// BCa ranks with mid-rank z0. The strict share below (R's boot, arch) would cancel the acceleration.
#[must_use]
pub fn bca_ranks(n: usize, p: f64, confidence: f64) -> Option<BcaRanks> {
    let rank = checked_rank(n, p)?;
    let (below, up_to) =
        (order_statistic_cdf(n, rank, rank - 1)?, order_statistic_cdf(n, rank, rank)?);
    let z0 = normal_quantile(f64::midpoint(below, up_to))?;
    let acceleration = quantile_acceleration(n, p)?;
    let levels = corrected_levels(z0, acceleration, confidence)?;
    let ends = (rank_at(n, rank, levels.0)?, rank_at(n, rank, levels.1)?);
    Some(BcaRanks { rank, z0, acceleration, levels, ends })
}

/// (2p - 1) / (6 sqrt(n p (1-p))), from the influence function of a quantile.
#[must_use]
pub fn quantile_acceleration(n: usize, p: f64) -> Option<f64> {
    checked_rank(n, p)?;
    Some((2.0 * p - 1.0) / (6.0 * (n as f64 * p * (1.0 - p)).sqrt()))
}

/// What a jackknife of the type 1 quantile would give: (2k-n) / (6 sqrt(n k (n-k))), where k is one less when
/// leaving out a value lowers the rank. The spacing of the data cancels.
///
/// `None` where that is 0/0 or outside the domain.
#[must_use]
pub fn quantile_acceleration_jackknife(n: usize, p: f64) -> Option<f64> {
    let rank = checked_rank(n, p)?;
    let k = if n > 1 && type1_rank(n - 1, p) < rank { rank - 1 } else { rank };
    let (k, n) = (k as f64, n as f64);
    let spread = n * k * (n - k);
    (spread > 0.0).then(|| (2.0 * k - n) / (6.0 * spread.sqrt()))
}

/// Ranks of the exact interval: at most (1 - confidence) / 2 of error on each side, a rank missing where the
/// sample is too small for it. Equals scipy's `quantile_test`.
#[must_use]
pub fn order_statistic_ranks(
    n: usize,
    p: f64,
    confidence: f64,
) -> Option<(Option<usize>, Option<usize>)> {
    checked_rank(n, p)?;
    let upper = upper_tail(confidence);
    let low = first_at_least(n, p, 1.0 - upper, true)?;
    let high = first_at_least(n, p, upper, false)? + 1;
    Some(((low > 0).then_some(low), (high <= n).then_some(high)))
}

/// Smallest m with P(Bin(n, p) <= m) >= level, or > level when `strict`.
fn first_at_least(n: usize, p: f64, level: f64, strict: bool) -> Option<usize> {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = usize::midpoint(low, high);
        let cdf = binomial_cdf(middle as u64, n as u64, p)?;
        match if strict { cdf > level } else { cdf >= level } {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Some(low)
}

/// Exact coverage of the interval between two order statistics of independent continuous values; a missing
/// upper rank is unbounded.
#[must_use]
pub fn order_statistic_coverage(n: usize, p: f64, low: usize, high: Option<usize>) -> Option<f64> {
    let up_to = |rank: usize| binomial_cdf(rank.checked_sub(1)? as u64, n as u64, p);
    let above = high.map_or(Some(1.0), up_to)?;
    Some(above - if low == 0 { 0.0 } else { up_to(low)? })
}

/// Values needed before order statistics bound the quantile on both sides: ceil(ln(alpha/2) / ln p) for p >= 0.5.
#[must_use]
pub fn min_n(p: f64, confidence: f64) -> Option<u64> {
    if !(p > 0.0 && p < 1.0 && confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let tail = 1.0 - upper_tail(confidence);
    Some(index((tail.ln() / p.max(1.0 - p).ln()).ceil()) as u64)
}

fn checked_rank(n: usize, p: f64) -> Option<usize> {
    (n > 0 && p > 0.0 && p < 1.0).then(|| type1_rank(n, p))
}
