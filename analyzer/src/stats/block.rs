//! Blocks of neighbouring values for within-run intervals of dependent requests.

use super::autocorrelation::{centred, lagged};
use super::quantile::index;

/// Block lengths that minimise the error of a block bootstrap variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockLength {
    /// Mean length for the stationary bootstrap.
    pub stationary: f64,
    /// Length for the circular block bootstrap.
    pub circular: f64,
}

/// Automatic block length of Politis and White (Econometric Reviews 23:53, 2004), as corrected by Patton, Politis
/// and White (28:372, 2009).
///
/// `None` below 10 values or when nothing varies.
#[must_use]
pub fn optimal_block_length(values: &[f64]) -> Option<BlockLength> {
    let n = values.len() as f64;
    let deviations = centred(values).filter(|all| all.len() >= 10)?;
    if lagged(&deviations, 0) <= 0.0 {
        return None;
    }
    let band = bandwidth(&deviations);
    let (mut spectrum, mut curvature) = (lagged(&deviations, 0) / n, 0.0);
    for lag in 1..=band {
        let covariance = lagged(&deviations, lag) / n;
        let window = flat_top(lag as f64 / band as f64);
        spectrum += 2.0 * window * covariance;
        curvature += 2.0 * window * lag as f64 * covariance;
    }
    let longest = (3.0 * n.sqrt()).min(n / 3.0).ceil();
    let length = |scale: f64| {
        let raw = (2.0 * curvature.powi(2) / (scale * spectrum.powi(2)) * n).cbrt();
        if raw.is_finite() { raw.min(longest) } else { longest }
    };
    Some(BlockLength { stationary: length(2.0), circular: length(4.0 / 3.0) })
}

/// Twice the lag after which a run of autocorrelations is negligible, by the rule of section 3.2 of the paper.
fn bandwidth(deviations: &[f64]) -> usize {
    let n = deviations.len() as f64;
    let run = index(n.log10()).max(5);
    let largest = (index(n.sqrt().ceil()) + run).min(deviations.len() - 2);
    let threshold = 2.0 * (n.log10() / n).sqrt();
    let negligible: Vec<bool> =
        (0..=largest).map(|lag| correlation(deviations, lag).abs() < threshold).collect();
    let last = negligible[..largest].windows(run).position(|window| window.iter().all(|low| *low));
    last.map_or(largest, |last| (2 * last.max(1)).min(largest))
}

/// Correlation of the values with those `lag` later, over the deviations from the common mean that both ends share.
fn correlation(deviations: &[f64], lag: usize) -> f64 {
    let n = deviations.len();
    let power = |part: &[f64]| part.iter().map(|value| value * value).sum::<f64>();
    let (head, tail) = (power(&deviations[..n - lag - 1]), power(&deviations[lag + 1..]));
    if head * tail > 0.0 { lagged(deviations, lag) / (head * tail).sqrt() } else { 0.0 }
}

/// The flat-top window: 1 up to one half, then straight down to 0.
fn flat_top(share: f64) -> f64 {
    if share <= 0.5 { 1.0 } else { 2.0 * (1.0 - share) }
}

/// Variance of the mean under the circular block bootstrap, exactly: the variance of a block's mean over every
/// start, divided by the number of blocks n / length.
///
/// `None` when `length` is 0 or longer than the sample.
#[must_use]
pub fn circular_block_variance(values: &[f64], length: usize) -> Option<f64> {
    let n = values.len();
    if length == 0 || length > n {
        return None;
    }
    let deviations = centred(values)?;
    let block = |start: usize| {
        let sum: f64 = (start..start + length).map(|i| deviations[i % n]).sum();
        sum / length as f64
    };
    let squares: f64 = (0..n).map(|start| block(start).powi(2)).sum();
    Some(squares / n as f64 * length as f64 / n as f64)
}
