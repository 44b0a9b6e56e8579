//! Mean and standard deviation of repetition-level figures.

/// Count, mean and spread of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with n-1 in the denominator; `None` below two values.
    pub sd: Option<f64>,
}

impl Moments {
    /// Standard error of the mean, sd / sqrt(n).
    #[must_use]
    pub fn standard_error(&self) -> Option<f64> {
        self.sd.map(|sd| sd / (self.n as f64).sqrt())
    }
}

/// Two-pass mean and standard deviation (ddof 1); `None` for an empty sample or one with a value that is no
/// finite number or too large to square.
#[must_use]
pub fn moments(values: &[f64]) -> Option<Moments> {
    let n = values.len();
    if n == 0 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    // Identical values must give exactly zero spread, which summing and dividing does not promise.
    if values.iter().all(|value| *value == values[0]) {
        return Some(Moments { n, mean: values[0], sd: (n > 1).then_some(0.0) });
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let sd = (squares / (n - 1) as f64).sqrt();
    sd.is_finite().then_some(Moments { n, mean, sd: Some(sd) })
}
