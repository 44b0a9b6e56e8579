//! Sample quantiles after Hyndman and Fan (Am. Stat. 50:361, 1996). Type 1 (a value that occurred) scores;
//! type 7 (interpolated) is for display.

/// The nine definitions, by the numbers of Hyndman and Fan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantileType {
    /// Type 1: inverse of the empirical distribution, the rank rule of HdrHistogram.
    InverseEcdf,
    /// Type 2: type 1, averaged at its steps.
    AveragedInverseEcdf,
    /// Type 3: the nearest order statistic, even on a tie.
    NearestRank,
    /// Type 4: linear between the steps of the empirical distribution.
    LinearEcdf,
    /// Type 5: Hazen, linear between the middles of the steps.
    Hazen,
    /// Type 6: Weibull, p(k) = k / (n + 1).
    Weibull,
    /// Type 7: p(k) = (k - 1) / (n - 1), the default of numpy, R and vLLM.
    Linear,
    /// Type 8: median-unbiased whatever the distribution.
    MedianUnbiased,
    /// Type 9: unbiased for normal data.
    NormalUnbiased,
}

/// Slack on n p: without it 0.95 x 20 would round to 19.000000000000004 and pick the next rank.
const SLACK: f64 = 1e-9;

/// Quantile of an ascending sample by any of the nine definitions.
///
/// `None` when the sample is empty or `p` lies outside 0..=1.
#[must_use]
pub fn quantile(sorted: &[f64], p: f64, definition: QuantileType) -> Option<f64> {
    if sorted.is_empty() || !(0.0..=1.0).contains(&p) {
        return None;
    }
    let n = sorted.len() as f64;
    let third = 1.0 / 3.0;
    match definition {
        QuantileType::InverseEcdf => quantile_type1(sorted, p),
        QuantileType::AveragedInverseEcdf => averaged(sorted, n * p),
        QuantileType::NearestRank => at(sorted, nearest(n * p)),
        QuantileType::LinearEcdf => interpolated(sorted, n * p),
        QuantileType::Hazen => interpolated(sorted, n * p + 0.5),
        QuantileType::Weibull => interpolated(sorted, (n + 1.0) * p),
        QuantileType::Linear => quantile_type7(sorted, p),
        QuantileType::MedianUnbiased => interpolated(sorted, (n + third) * p + third),
        QuantileType::NormalUnbiased => interpolated(sorted, (n + 0.25) * p + 0.375),
    }
}

/// Type 1, the inverse of the empirical distribution: `sorted[ceil(n p) - 1]`.
///
/// `sorted` must be ascending. `None` when it is empty or `p` lies outside 0..=1.
#[must_use]
pub fn quantile_type1<T: Copy>(sorted: &[T], p: f64) -> Option<T> {
    if sorted.is_empty() || !(0.0..=1.0).contains(&p) {
        return None;
    }
    sorted.get(type1_rank(sorted.len(), p) - 1).copied()
}

/// 1-based rank of the type 1 quantile among `n` ascending values, at least 1.
pub(super) fn type1_rank(n: usize, p: f64) -> usize {
    index((n as f64 * p - SLACK).ceil()).clamp(1, n.max(1))
}

/// Type 7, linear interpolation at (n-1) p: numpy's, R's and vLLM's default.
///
/// `sorted` must be ascending. `None` when it is empty or `p` lies outside 0..=1.
#[must_use]
pub fn quantile_type7(sorted: &[f64], p: f64) -> Option<f64> {
    if sorted.is_empty() || !(0.0..=1.0).contains(&p) {
        return None;
    }
    interpolated(sorted, (sorted.len() - 1) as f64 * p + 1.0)
}

/// Median of an ascending sample, the mean of the two middle values when their number is even.
#[must_use]
pub fn median(sorted: &[f64]) -> Option<f64> {
    quantile_type7(sorted, 0.5)
}

fn averaged(sorted: &[f64], position: f64) -> Option<f64> {
    let on_step = (position - position.round()).abs() < SLACK;
    match on_step {
        true => {
            Some(f64::midpoint(at(sorted, position.round())?, at(sorted, position.round() + 1.0)?))
        }
        false => at(sorted, position.ceil()),
    }
}

fn nearest(position: f64) -> f64 {
    position.round_ties_even()
}

fn interpolated(sorted: &[f64], position: f64) -> Option<f64> {
    let (below, above) = (at(sorted, position.floor())?, at(sorted, position.ceil())?);
    Some(below + (above - below) * (position - position.floor()))
}

/// The value at a 1-based rank, the ends beyond them.
fn at(sorted: &[f64], rank: f64) -> Option<f64> {
    sorted.get(index(rank).clamp(1, sorted.len()) - 1).copied()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "callers pass a rank between 0 and the length of a slice"
)]
pub(super) fn index(rank: f64) -> usize {
    rank as usize
}
