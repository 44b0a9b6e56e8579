//! The regularised incomplete beta function, and with it the beta and the binomial distribution.
//!
//! `statrs` stops its continued fraction after 140 steps without a word, which is too early above some
//! ten thousand requests, and its prefactor loses digits in a difference of large log-gammas. This one goes
//! on until it converges, and takes the prefactor from Loader's saddle-point form (C. Loader, "Fast and
//! accurate computation of binomial probabilities", 2000).

use std::f64::consts::PI;

/// Steps of the continued fraction: some multiple of sqrt(max(a, b)), hence enough for 1e9 requests.
const MAX_STEPS: u32 = 200_000;

/// I_x(a, b), the probability that a Beta(a, b) variable is at most `x`.
///
/// `None` unless both shapes are positive and finite and `x` lies in 0..=1.
#[must_use]
pub fn beta_cdf(x: f64, a: f64, b: f64) -> Option<f64> {
    let shapes = a > 0.0 && b > 0.0 && a.is_finite() && b.is_finite();
    if !shapes || !(0.0..=1.0).contains(&x) {
        return None;
    }
    if x == 0.0 || x == 1.0 {
        return Some(x);
    }
    // The fraction converges fast on this side of the mean only.
    if x <= (a + 1.0) / (a + b + 2.0) {
        lower_tail(x, 1.0 - x, a, b)
    } else {
        lower_tail(1.0 - x, x, b, a).map(|upper| 1.0 - upper)
    }
}

/// Quantile of Beta(a, b), by bisection until neighbouring numbers are reached; `None` outside the domain.
#[must_use]
pub fn beta_quantile(q: f64, a: f64, b: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&q) {
        return None;
    }
    let (mut low, mut high) = (0.0, 1.0);
    loop {
        let middle: f64 = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return Some(high);
        }
        match beta_cdf(middle, a, b)? < q {
            true => low = middle,
            false => high = middle,
        }
    }
}

/// P(X <= successes) of a binomial with `n` trials; 1 from `n` on. `None` when `p` is outside 0..=1.
#[must_use]
pub fn binomial_cdf(successes: u64, n: u64, p: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&p) {
        return None;
    }
    if successes >= n {
        return Some(1.0);
    }
    beta_cdf(1.0 - p, (n - successes) as f64, (successes + 1) as f64)
}

fn lower_tail(x: f64, complement: f64, a: f64, b: f64) -> Option<f64> {
    let value = ln_prefactor(x, complement, a, b).exp() * continued_fraction(x, a, b)? / a;
    Some(value.clamp(0.0, 1.0))
}

/// ln of x^a (1-x)^b / B(a, b).
fn ln_prefactor(x: f64, complement: f64, a: f64, b: f64) -> f64 {
    let n = a + b;
    let stirling = stirling_error(n) - stirling_error(a) - stirling_error(b);
    let deviance = deviance(a, n * x) + deviance(b, n * complement);
    (a * b / n).ln() + 0.5 * (n / (2.0 * PI * a * b)).ln() + stirling - deviance
}

/// ln n! less Stirling's formula.
fn stirling_error(n: f64) -> f64 {
    if n <= 15.0 {
        return libm::lgamma(n + 1.0) - (n + 0.5) * n.ln() + n - 0.5 * (2.0 * PI).ln();
    }
    let square = n * n;
    let series = [1.0 / 1188.0, 1.0 / 1680.0, 1.0 / 1260.0, 1.0 / 360.0, 1.0 / 12.0];
    series.into_iter().reduce(|rest, term| term - rest / square).unwrap_or_default() / n
}

/// x ln(x / mean) + mean - x, without cancellation where both are close.
fn deviance(x: f64, mean: f64) -> f64 {
    if (x - mean).abs() >= 0.1 * (x + mean) {
        return x * (x / mean).ln() + mean - x;
    }
    let v = (x - mean) / (x + mean);
    let mut sum = (x - mean) * v;
    let mut term = 2.0 * x * v;
    for j in 1..1000 {
        term *= v * v;
        let next = sum + term / f64::from(2 * j + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// The fraction of DLMF 8.17.22, by the modified Lentz method.
fn continued_fraction(x: f64, a: f64, b: f64) -> Option<f64> {
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut numerator = 1.0;
    let mut denominator = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = denominator;
    for step in 1..=MAX_STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for coefficient in [even, odd] {
            denominator = 1.0 / away_from_zero(1.0 + coefficient * denominator);
            numerator = away_from_zero(1.0 + coefficient / numerator);
            factor = denominator * numerator;
            value *= factor;
        }
        if (factor - 1.0).abs() < 1e-15 {
            return Some(value);
        }
    }
    None
}
