//! Power of the tests over repetitions, and the repetitions that a power needs.

use super::distribution::{normal_cdf, t_quantile, upper_tail};
use super::quantile::index;

/// Power that "repetitions needed" asks for.
pub const USUAL_POWER: f64 = 0.8;

/// Steps of Simpson's rule over the law of the standard deviation.
const STEPS: u32 = 2_000;

/// How repetitions of two arms are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// `n` repetitions of each arm, equal variances: 2n - 2 degrees of freedom.
    TwoSample,
    /// `n` pairs, where the standard deviation is that of the differences: n - 1 degrees of freedom.
    Paired,
}

impl Design {
    fn df(self, n: u32) -> f64 {
        match self {
            Self::TwoSample => 2.0 * f64::from(n) - 2.0,
            Self::Paired => f64::from(n) - 1.0,
        }
    }

    /// Standard error of the difference over the standard deviation.
    fn scale(self, n: u32) -> f64 {
        match self {
            Self::TwoSample => (2.0 / f64::from(n)).sqrt(),
            Self::Paired => (1.0 / f64::from(n)).sqrt(),
        }
    }
}

/// P(EQUIVALENT) with `n` repetitions when the true difference is `truth`, the repetitions' standard deviation
/// `sd`, the margin `delta` and each one-sided level `alpha`.
///
/// `None` below two repetitions or for a spread, margin or level outside their domain.
#[must_use]
pub fn tost_power(
    design: Design,
    n: u32,
    sd: f64,
    delta: f64,
    alpha: f64,
    truth: f64,
) -> Option<f64> {
    if !(delta > 0.0 && truth.is_finite() && alpha > 0.0 && alpha < 0.5) {
        return None;
    }
    let t = t_quantile(1.0 - alpha, design.df(n))?;
    let error = sd * design.scale(n);
    // Beyond this spread no interval fits into the margin.
    let widest = delta / (t * error);
    over_spread(design.df(n), error, widest, |estimated| {
        let room = delta - t * estimated;
        let share = normal_cdf((room - truth) / error)? - normal_cdf((-room - truth) / error)?;
        Some(share.max(0.0))
    })
}

/// P(the two-sided interval of the difference lies beyond 0, on the side of `truth`).
#[must_use]
pub fn difference_power(
    design: Design,
    n: u32,
    sd: f64,
    confidence: f64,
    truth: f64,
) -> Option<f64> {
    if !(confidence > 0.0 && confidence < 1.0 && truth.is_finite()) {
        return None;
    }
    let t = t_quantile(upper_tail(confidence), design.df(n))?;
    let error = sd * design.scale(n);
    over_spread(design.df(n), error, f64::INFINITY, |estimated| {
        normal_cdf((truth.abs() - t * estimated) / error)
    })
}

/// Smallest number of repetitions, from 2 to `cap`, whose power is at least `wanted`.
///
/// `power` must not fall with more repetitions. `None` when even `cap` repetitions do not reach it.
pub fn repetitions_needed(
    wanted: f64,
    cap: u32,
    power: impl Fn(u32) -> Option<f64>,
) -> Option<u32> {
    let enough = |n| power(n).is_some_and(|power| power >= wanted);
    if cap < 2 || !enough(cap) {
        return None;
    }
    let (mut low, mut high) = (1, cap);
    while high - low > 1 {
        let middle = u32::midpoint(low, high);
        match enough(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    Some(high)
}

/// Mean of `given` over the estimated standard error, which is the true one times a chi variable over
/// sqrt(df), up to `widest` times the true one: `given` is 0 above, and Simpson's rule wants no kink.
fn over_spread(
    df: f64,
    error: f64,
    widest: f64,
    given: impl Fn(f64) -> Option<f64>,
) -> Option<f64> {
    if !(df >= 1.0 && error > 0.0 && error.is_finite()) {
        return None;
    }
    let ln_scale = std::f64::consts::LN_2 + 0.5 * df * (0.5 * df).ln() - libm::lgamma(0.5 * df);
    let density = |u: f64| match u > 0.0 {
        true => (ln_scale + (df - 1.0) * u.ln() - 0.5 * df * u * u).exp(),
        false if df == 1.0 => ln_scale.exp(),
        false => 0.0,
    };
    let reach = 10.0 / (2.0 * df).sqrt();
    let (from, to) = ((1.0 - reach).max(0.0), (1.0 + reach).min(widest));
    if to <= from {
        return Some(0.0);
    }
    let step = (to - from) / f64::from(STEPS);
    let mut sum = 0.0;
    for i in 0..=STEPS {
        let u = from + step * f64::from(i);
        let weight = match i {
            0 | STEPS => 1.0,
            odd if odd % 2 == 1 => 4.0,
            _ => 2.0,
        };
        sum += weight * density(u) * given(u * error)?;
    }
    Some((sum * step / 3.0).clamp(0.0, 1.0))
}

/// Requests in each repetition before binomial noise alone lets a coefficient of variation be `bound`:
/// (1-p) / (p bound^2). More repetitions do not help below it. `None` when `p` or `bound` is not positive.
#[must_use]
pub fn requests_needed(p: f64, bound: f64) -> Option<u64> {
    let requests = (1.0 - p) / (p * bound * bound);
    let exists = p > 0.0 && p <= 1.0 && bound > 0.0 && requests.is_finite();
    exists.then(|| index((requests - 1e-9).ceil().max(1.0)) as u64)
}
