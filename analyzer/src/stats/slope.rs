//! The slope of equally or unequally spaced values: least squares with plain and Newey-West errors, and
//! Theil-Sen.

use super::Interval;
use super::distribution::{normal_quantile, t_cdf, upper_tail};
use super::mann_kendall::ties;
use super::moments::moments;
use super::quantile::{index, median};

/// A least-squares line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OlsLine {
    /// Rise per unit of x.
    pub slope: f64,
    /// Value at x = 0.
    pub intercept: f64,
    /// Standard error of the slope for independent errors.
    pub slope_error: f64,
    /// Two-sided p of no slope; `None` for a perfect fit.
    pub p_two_sided: Option<f64>,
}

/// Least squares of `y` on `x`; `None` below three points or without spread in `x`.
#[must_use]
pub fn ols(x: &[f64], y: &[f64]) -> Option<OlsLine> {
    let fit = Fit::new(x, y)?;
    let df = (x.len() - 2) as f64;
    let squares: f64 = fit.residuals.iter().map(|residual| residual * residual).sum();
    let slope_error = (squares / df / fit.spread).sqrt();
    if !slope_error.is_finite() {
        return None;
    }
    let p_two_sided = match slope_error > 0.0 {
        true => t_cdf(-(fit.slope / slope_error).abs(), df).map(|tail| 2.0 * tail),
        false => None,
    };
    Some(OlsLine { slope: fit.slope, intercept: fit.intercept, slope_error, p_two_sided })
}

/// Standard error of the least-squares slope that allows for correlation up to `lags` apart (Newey and West
/// 1987: Bartlett weights, no small-sample factor).
#[must_use]
pub fn newey_west_error(x: &[f64], y: &[f64], lags: usize) -> Option<f64> {
    let fit = Fit::new(x, y)?;
    let scores: Vec<f64> =
        fit.centred.iter().zip(&fit.residuals).map(|(x, residual)| x * residual).collect();
    let product =
        |lag: usize| scores.iter().zip(scores.iter().skip(lag)).map(|(a, b)| a * b).sum::<f64>();
    let weight = |lag: usize| 1.0 - lag as f64 / (lags + 1) as f64;
    let meat = product(0) + (1..=lags).map(|lag| 2.0 * weight(lag) * product(lag)).sum::<f64>();
    Some(meat.max(0.0).sqrt() / fit.spread)
}

struct Fit {
    slope: f64,
    intercept: f64,
    centred: Vec<f64>,
    residuals: Vec<f64>,
    spread: f64,
}

impl Fit {
    fn new(x: &[f64], y: &[f64]) -> Option<Self> {
        if x.len() != y.len() || x.len() < 3 {
            return None;
        }
        let (mean_x, mean_y) = (moments(x)?.mean, moments(y)?.mean);
        let centred: Vec<f64> = x.iter().map(|x| x - mean_x).collect();
        let spread: f64 = centred.iter().map(|x| x * x).sum();
        let slope = centred.iter().zip(y).map(|(x, y)| x * (y - mean_y)).sum::<f64>() / spread;
        if !slope.is_finite() {
            return None;
        }
        let residuals = centred.iter().zip(y).map(|(x, y)| y - mean_y - slope * x).collect();
        Some(Self { slope, intercept: mean_y - slope * mean_x, centred, residuals, spread })
    }
}

/// Median of all pairwise slopes (Theil 1950, Sen 1968).
#[derive(Clone, Debug, PartialEq)]
pub struct TheilSen {
    /// Rise per unit of x.
    pub slope: f64,
    /// Median of y less slope times median of x.
    pub intercept: f64,
    /// Sen's interval of the slope.
    pub interval: Interval,
}

/// Theil-Sen over every pair; `None` below two points with different x, or when a value is not finite.
#[must_use]
pub fn theil_sen(x: &[f64], y: &[f64], confidence: f64) -> Option<TheilSen> {
    moments(x).zip(moments(y)).filter(|_| x.len() == y.len())?;
    let mut slopes = Vec::new();
    for i in 0..x.len() {
        for j in i + 1..x.len() {
            if x[i] != x[j] {
                slopes.push((y[j] - y[i]) / (x[j] - x[i]));
            }
        }
    }
    slopes.sort_by(f64::total_cmp);
    let slope = median(&slopes).filter(|_| slopes.iter().all(|slope| slope.is_finite()))?;
    let middle = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        median(&sorted)
    };
    let intercept = middle(y)? - slope * middle(x)?;
    Some(TheilSen { slope, intercept, interval: sen_interval(&slopes, x, y, confidence) })
}

fn sen_interval(slopes: &[f64], x: &[f64], y: &[f64], confidence: f64) -> Interval {
    let spread = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let tied = |values: &[f64]| ties(values).into_iter().map(spread).sum::<f64>();
    let variance = (spread(y.len() as f64) - tied(x) - tied(y)) / 18.0;
    let Some(z) = normal_quantile(upper_tail(confidence)).filter(|_| variance > 0.0) else {
        return Interval::Degenerate { reason: "nothing varies".to_owned() };
    };
    let (pairs, reach) = (slopes.len() as f64, z * variance.sqrt());
    let last = slopes.len() - 1;
    let low = index((((pairs - reach) / 2.0).round_ties_even() - 1.0).max(0.0)).min(last);
    let high = index(((pairs + reach) / 2.0).round_ties_even()).min(last);
    Interval::Interval { low: slopes[low], high: slopes[high], confidence }
}
