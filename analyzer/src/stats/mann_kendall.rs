//! Mann and Kendall's test of a monotone trend.
//!
//! In-flight counts of neighbouring seconds are so alike that this test cries wolf at half load: thin them, print
//! the p, and let the size of the slope decide.

use super::distribution::normal_cdf;

/// The test with its parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannKendall {
    /// Rising less falling pairs.
    pub s: i64,
    /// Variance of S, corrected for ties.
    pub variance: f64,
    /// S in standard deviations, with continuity correction; 0 when nothing varies.
    pub z: f64,
    /// Two-sided p.
    pub p_two_sided: f64,
    /// One-sided p of a rise.
    pub p_up: f64,
    /// Kendall's tau-b, -1 to 1; `None` when nothing varies.
    pub tau_b: Option<f64>,
}

/// Tests equally spaced values; `None` below three, or when one is not finite.
#[must_use]
pub fn mann_kendall(values: &[f64]) -> Option<MannKendall> {
    if values.len() < 3 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let s = rising_less_falling(values);
    let n = values.len() as f64;
    let ties = ties(values);
    let tied = |f: &dyn Fn(f64) -> f64| ties.iter().map(|t| f(*t)).sum::<f64>();
    let spread = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let variance = (spread(n) - tied(&spread)) / 18.0;
    let z = match variance > 0.0 {
        true => (s as f64 - s.signum() as f64) / variance.sqrt(),
        false => 0.0,
    };
    let pairs = n * (n - 1.0) / 2.0;
    let untied = pairs - tied(&|t| t * (t - 1.0) / 2.0);
    Some(MannKendall {
        s,
        variance,
        z,
        p_two_sided: (2.0 * normal_cdf(-z.abs())?).min(1.0),
        p_up: normal_cdf(-z)?,
        tau_b: (untied > 0.0).then(|| s as f64 / (pairs * untied).sqrt()),
    })
}

fn rising_less_falling(values: &[f64]) -> i64 {
    let later = values.iter().enumerate().map(|(i, first)| {
        let signs = values[i + 1..].iter().map(|second| match second.total_cmp(first) {
            std::cmp::Ordering::Greater => 1,
            std::cmp::Ordering::Equal => 0,
            std::cmp::Ordering::Less => -1,
        });
        signs.sum::<i64>()
    });
    later.sum()
}

/// Sizes of the groups of equal values.
pub(super) fn ties(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .chunk_by(|a, b| a == b)
        .map(|group| group.len() as f64)
        .filter(|size| *size > 1.0)
        .collect()
}
