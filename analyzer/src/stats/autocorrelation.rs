//! How much neighbouring values of one run repeat each other. For display: what is published comes from
//! repetitions and needs none of this.

use super::distribution::chi2_upper;
use super::moments::moments;

/// Ljung and Box's test that the first autocorrelations are all 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LjungBox {
    /// n (n+2) sum r_k^2 / (n-k).
    pub q: f64,
    /// P(chi-square with as many degrees of freedom as lags > Q).
    pub p: f64,
}

/// Autocorrelations at lags 0 to `lags`, n in every denominator.
///
/// `None` when nothing varies or there are not more values than lags.
#[must_use]
pub fn autocorrelations(values: &[f64], lags: usize) -> Option<Vec<f64>> {
    let centred = centred(values)?;
    let power: f64 = centred.iter().map(|value| value * value).sum();
    if !(power > 0.0 && power.is_finite()) || values.len() <= lags {
        return None;
    }
    Some((0..=lags).map(|lag| lagged(&centred, lag) / power).collect())
}

/// Ljung-Box over lags 1 to `lags`.
#[must_use]
pub fn ljung_box(values: &[f64], lags: usize) -> Option<LjungBox> {
    let r = autocorrelations(values, lags).filter(|_| lags > 0)?;
    let n = values.len() as f64;
    let terms = r.iter().enumerate().skip(1).map(|(lag, r)| r * r / (n - lag as f64));
    let q = n * (n + 2.0) * terms.sum::<f64>();
    Some(LjungBox { q, p: chi2_upper(q, lags as f64)? })
}

/// Independent values that carry as much about the mean, n (1-r) / (1+r) for a first-order process. Negative
/// correlation counts as none: it must not make a run worth more than its requests.
#[must_use]
pub fn effective_sample_size(values: &[f64]) -> Option<f64> {
    let r = autocorrelations(values, 1)?[1].max(0.0);
    Some(values.len() as f64 * (1.0 - r) / (1.0 + r))
}

/// Sum of squared steps over sum of squared deviations (von Neumann 1941): about 2 for independent values, less
/// when neighbours are alike.
#[must_use]
pub fn von_neumann_ratio(values: &[f64]) -> Option<f64> {
    let centred = centred(values)?;
    let power: f64 = centred.iter().map(|value| value * value).sum();
    let steps: f64 = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    (power > 0.0 && (steps / power).is_finite()).then(|| steps / power)
}

/// Deviations from the mean; exactly 0 for identical values.
pub(super) fn centred(values: &[f64]) -> Option<Vec<f64>> {
    let mean = moments(values)?.mean;
    Some(values.iter().map(|value| value - mean).collect())
}

/// Sum of products `lag` apart.
pub(super) fn lagged(centred: &[f64], lag: usize) -> f64 {
    centred.iter().zip(centred.iter().skip(lag)).map(|(a, b)| a * b).sum()
}
