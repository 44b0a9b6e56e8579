//! Special functions of our own: the analyzer takes its from a library.

/// Digits that the continued fraction and the series are carried to.
const EPSILON: f64 = 1e-16;
const STEPS: usize = 10_000;
/// Keeps Lentz's method from dividing by zero.
const TINY: f64 = 1e-300;
/// Halvings of a bracket: more than a double has bits.
const HALVINGS: usize = 200;

/// ln Gamma(x) for x > 0: Stirling's series at x + 10, brought back by the recurrence.
#[must_use]
pub fn ln_gamma(x: f64) -> f64 {
    let shifted = x + 10.0;
    let back: f64 = (0..10).map(|step| (x + f64::from(step)).ln()).sum();
    let inverse = 1.0 / shifted;
    let square = inverse * inverse;
    let series = inverse
        * (1.0 / 12.0
            - square
                * (1.0 / 360.0
                    - square * (1.0 / 1260.0 - square * (1.0 / 1680.0 - square / 1188.0))));
    (shifted - 0.5) * shifted.ln() - shifted + 0.5 * std::f64::consts::TAU.ln() + series - back
}

/// Regularised incomplete beta function I_x(a, b), by Lentz's continued fraction (DLMF 8.17.22).
#[must_use]
pub fn beta_regularised(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast only on this side of the mean.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_regularised(1.0 - x, b, a);
    }
    let front = a * x.ln() + b * (-x).ln_1p() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    front.exp() / (a * fraction(x, a, b))
}

fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let coefficient = |step: usize| {
        let m = (step / 2) as f64;
        match step % 2 {
            0 => m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            _ => -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        }
    };
    let guard = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut value, mut c, mut d) = (1.0, 1.0, 0.0);
    for step in 1..STEPS {
        d = 1.0 / guard(1.0 + coefficient(step) * d);
        c = guard(1.0 + coefficient(step) / c);
        value *= c * d;
        if (c * d - 1.0).abs() < EPSILON {
            break;
        }
    }
    value
}

/// P(T <= t) of Student's t with `df` degrees of freedom.
#[must_use]
pub fn t_cdf(t: f64, df: f64) -> f64 {
    let tail = beta_regularised(df / (df + t * t), df / 2.0, 0.5) / 2.0;
    if t < 0.0 { tail } else { 1.0 - tail }
}

/// The t with P(T <= t) = p, for p of at least a half, by bisection.
#[must_use]
pub fn t_quantile(p: f64, df: f64) -> f64 {
    let mut high = 1.0;
    while t_cdf(high, df) < p && high < 1e12 {
        high *= 2.0;
    }
    bisect(0.0, high, |t| t_cdf(t, df) < p)
}

/// Regularised lower incomplete gamma function P(a, x): the series (DLMF 8.11.4).
#[must_use]
pub fn gamma_regularised(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let (mut term, mut sum) = (1.0 / a, 1.0 / a);
    for step in 1..STEPS {
        term *= x / (a + step as f64);
        sum += term;
        if term < sum * EPSILON {
            break;
        }
    }
    (sum * (a * x.ln() - x - ln_gamma(a)).exp()).min(1.0)
}

/// The chi-square quantile with `df` degrees of freedom, by bisection.
#[must_use]
pub fn chi2_quantile(p: f64, df: f64) -> f64 {
    let cdf = |x: f64| gamma_regularised(df / 2.0, x / 2.0);
    let mut high = df.max(1.0);
    while cdf(high) < p && high < 1e9 {
        high *= 2.0;
    }
    bisect(0.0, high, |x| cdf(x) < p)
}

/// The standard normal quantile for p of at least a half: chi-square with one degree of freedom is its square.
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    chi2_quantile(2.0 * p - 1.0, 1.0).sqrt()
}

fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if below(middle) { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(found: f64, known: f64) {
        assert!((found - known).abs() <= 1e-9 * known.abs().max(1e-3), "{found} is not {known}");
    }

    /// Values of scipy 1.17.1 (`scipy.stats`, `scipy.special`).
    #[test]
    fn quantiles_and_functions_of_scipy() {
        close(t_quantile(0.975, 4.0), 2.776_445_105_197_793_4);
        close(t_quantile(0.975, 4.444), 2.670_394_445_463_555_8);
        close(t_quantile(0.995, 1.0), 63.656_741_162_871_526);
        close(t_cdf(-2.5, 4.0), 0.033_383_272_405_994_07);
        close(beta_regularised(0.99, 990.0, 11.0), 0.583_040_803_301_097_2);
        close(beta_regularised(0.025, 1.0, 100.0), 0.920_482_710_138_168_4);
        close(chi2_quantile(0.975, 4.0), 11.143_286_781_877_796);
        close(chi2_quantile(0.05, 9.0), 3.325_112_843_066_815);
        close(normal_quantile(0.975), 1.959_963_984_540_054);
        close(normal_quantile(0.5), 0.0);
        close(ln_gamma(0.5), 0.572_364_942_924_700_1);
    }
}
