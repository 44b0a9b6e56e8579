//! Distribution functions and quantiles: `statrs`, and `libm`'s erfc for the normal distribution function,
//! which `statrs` gives to 9e-11 only.

use statrs::distribution::{ChiSquared, Continuous as _, ContinuousCDF, Normal, StudentsT};

/// Quantile of Student's t with `df` degrees of freedom, which Welch makes fractional.
///
/// `None` unless `df` is positive and finite and `p` lies strictly between 0 and 1.
#[must_use]
pub fn t_quantile(p: f64, df: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0 && df.is_finite()) {
        return None;
    }
    StudentsT::new(0.0, 1.0, df).ok().map(|t| t.inverse_cdf(p)).filter(|t| t.is_finite())
}

/// P(T <= t) of Student's t with `df` degrees of freedom; `None` on a non-finite argument.
#[must_use]
pub fn t_cdf(t: f64, df: f64) -> Option<f64> {
    if !t.is_finite() || !df.is_finite() {
        return None;
    }
    StudentsT::new(0.0, 1.0, df).ok().map(|distribution| distribution.cdf(t))
}

/// Quantile of the standard normal; `None` unless `p` lies strictly between 0 and 1.
#[must_use]
pub fn normal_quantile(p: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    Normal::new(0.0, 1.0).ok().map(|normal| normal.inverse_cdf(p))
}

/// P(Z <= z) of the standard normal, to the last digits in both tails; `None` when `z` is no number.
#[must_use]
pub fn normal_cdf(z: f64) -> Option<f64> {
    (!z.is_nan()).then(|| 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2))
}

/// Quantile of chi-square with `df` degrees of freedom; `None` outside its domain.
#[must_use]
pub fn chi2_quantile(p: f64, df: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0 && df.is_finite()) {
        return None;
    }
    let chi2 = ChiSquared::new(df).ok()?;
    // `statrs` stops at about ten digits; Newton's step squares what is left.
    let rough = chi2.inverse_cdf(p);
    let step = (chi2.cdf(rough) - p) / chi2.pdf(rough);
    let fine = if step.is_finite() { rough - step } else { rough };
    Some(fine).filter(|x| x.is_finite() && *x > 0.0)
}

/// P(X > x) of chi-square with `df` degrees of freedom; `None` outside its domain.
#[must_use]
pub fn chi2_upper(x: f64, df: f64) -> Option<f64> {
    if !(x >= 0.0 && x.is_finite() && df.is_finite()) {
        return None;
    }
    ChiSquared::new(df).ok().map(|chi2| chi2.sf(x))
}

/// The upper critical probability of a two-sided interval: 0.975 for a confidence of 0.95.
pub(super) fn upper_tail(confidence: f64) -> f64 {
    1.0 - (1.0 - confidence) / 2.0
}
