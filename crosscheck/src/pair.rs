//! Two arms at one rate: the difference of their good-fractions.

use crate::rung::{Ends, spread, t_interval};
use crate::special::t_quantile;

/// Estimate and interval of a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Second minus first.
    pub estimate: f64,
    /// Nothing where neither arm varies, or repetitions are too few.
    pub interval: Option<Ends>,
}

/// Independent repetitions, variances not assumed equal (Welch). The degrees of freedom are formed from the share
/// that each arm has in the variance.
#[must_use]
pub fn independent(first: &[f64], second: &[f64], confidence: f64) -> Option<Difference> {
    let mean = |shares: &[f64]| {
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    };
    let estimate = mean(second)? - mean(first)?;
    let interval = spread(first).zip(spread(second)).and_then(|((_, a), (_, b))| {
        let (count_a, count_b) = (first.len() as f64, second.len() as f64);
        let variance = a / count_a + b / count_b;
        let part = a / count_a / variance;
        let freedom =
            1.0 / (part * part / (count_a - 1.0) + (1.0 - part).powi(2) / (count_b - 1.0));
        let half = t_quantile(f64::midpoint(1.0, confidence), freedom) * variance.sqrt();
        (variance > 0.0).then_some((estimate - half, estimate + half))
    });
    Some(Difference { estimate, interval })
}

/// Repetitions as blocks: the t interval of the differences within them.
#[must_use]
pub fn blocked(first: &[f64], second: &[f64], confidence: f64) -> Option<Difference> {
    if first.len() != second.len() || first.is_empty() {
        return None;
    }
    let within: Vec<f64> = first.iter().zip(second).map(|(a, b)| b - a).collect();
    let estimate = within.iter().sum::<f64>() / within.len() as f64;
    Some(Difference { estimate, interval: t_interval(&within, confidence) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [f64; 5] = [0.90, 0.95, 0.88, 0.93, 0.91];
    const B: [f64; 5] = [0.85, 0.97, 0.80, 0.92, 0.86];

    /// scipy 1.17.1: ttest_ind(equal_var=False) and ttest_rel, 90 % intervals.
    #[test]
    fn intervals_of_scipy() {
        let close = |found: Option<Ends>, low: f64, high: f64| {
            let (a, b) = found.unwrap();
            assert!((a - low).abs() < 1e-9 && (b - high).abs() < 1e-9, "{a} {b}");
        };
        let welch = independent(&A, &B, 0.90).unwrap();
        close(welch.interval, -0.097_420_517_133, 0.029_420_517_133);
        let paired = blocked(&A, &B, 0.90).unwrap();
        close(paired.interval, -0.071_292_088_175, 0.003_292_088_175);
        assert!((welch.estimate + 0.034).abs() < 1e-12 && (paired.estimate + 0.034).abs() < 1e-12);
    }

    #[test]
    fn without_variance_or_partners_there_is_no_interval() {
        assert_eq!(independent(&[1.0, 1.0], &[1.0, 1.0], 0.95).unwrap().interval, None);
        assert_eq!(independent(&[1.0], &[0.9, 1.0], 0.95).unwrap().interval, None);
        assert_eq!(independent(&[], &[0.9], 0.95), None);
        assert_eq!(blocked(&[1.0], &[0.9, 1.0], 0.95), None);
    }
}
