//! The bootstrap without draws: every resample is counted, so that there is no seed and no sampling error.

use super::Interval;
use super::acceleration::acceleration;
use super::distribution::{normal_cdf, normal_quantile, upper_tail};
use super::law::Law;
use super::multiset::{MAX_ENUMERATED, multisets};
use super::quantile::{QuantileType, median};

/// A statistic with its law over all resamples and its leave-one-out values.
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrap {
    /// The statistic of the data.
    pub estimate: f64,
    /// What it takes over all resamples.
    pub law: Law,
    /// The statistic with one item left out, in the items' order.
    pub jackknife: Vec<f64>,
}

/// What turns a percentile interval into a BCa interval (Efron, JASA 82:171, 1987).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correction {
    /// Bias correction, normal quantile of the mid-rank share below the estimate.
    pub z0: f64,
    /// Acceleration.
    pub acceleration: f64,
    /// Probabilities whose quantiles are the ends of the interval.
    pub levels: (f64, f64),
}

impl Bootstrap {
    /// Enumerates `statistic`, which gets how often each of `items` items is drawn.
    ///
    /// `None` unless 2 to [`MAX_ENUMERATED`] items give a finite statistic in every resample.
    pub fn enumerate(items: usize, statistic: impl Fn(&[usize]) -> Option<f64>) -> Option<Self> {
        if !(2..=MAX_ENUMERATED).contains(&items) {
            return None;
        }
        let mut points = Vec::new();
        multisets(items, |counts, weight| {
            points.push((statistic(counts).unwrap_or(f64::NAN), weight));
        });
        let mut counts = vec![1; items];
        let estimate = statistic(&counts)?;
        let mut jackknife = Vec::with_capacity(items);
        for item in 0..items {
            counts[item] = 0;
            jackknife.push(statistic(&counts)?);
            counts[item] = 1;
        }
        Some(Self { estimate, law: Law::new(points)?, jackknife })
    }

    /// Of the mean of repetition-level figures.
    #[must_use]
    pub fn of_mean(values: &[f64]) -> Option<Self> {
        Self::enumerate(values.len(), |counts| {
            let drawn: usize = counts.iter().sum();
            let sum: f64 = counts.iter().zip(values).map(|(n, value)| *n as f64 * value).sum();
            Some(sum / drawn as f64)
        })
    }

    /// Of the median. Lumpy: at five values it equals itself in more than a third of the resamples.
    #[must_use]
    pub fn of_median(values: &[f64]) -> Option<Self> {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        Self::enumerate(values.len(), |counts| {
            let copies = order.iter().flat_map(|i| std::iter::repeat_n(values[*i], counts[*i]));
            median(&copies.collect::<Vec<f64>>())
        })
    }

    /// Quantiles of the law at the two tails, by type 7 or, as values that occurred, type 1.
    #[must_use]
    pub fn percentile(&self, confidence: f64, definition: QuantileType) -> Interval {
        let tail = 1.0 - upper_tail(confidence);
        self.between((tail, 1.0 - tail), confidence, definition)
    }

    /// The percentile interval mirrored at the estimate.
    #[must_use]
    pub fn basic(&self, confidence: f64) -> Interval {
        match self.percentile(confidence, QuantileType::Linear) {
            Interval::Interval { low, high, confidence } => Interval::Interval {
                low: 2.0 * self.estimate - high,
                high: 2.0 * self.estimate - low,
                confidence,
            },
            other => other,
        }
    }

    /// Bias-corrected and accelerated, mid-rank z0 and quantiles of type 7 as scipy does; R's boot takes the
    /// strict rank and another quantile.
    #[must_use]
    pub fn bca(&self, confidence: f64, definition: QuantileType) -> Interval {
        match self.correction(confidence) {
            Some(correction) => self.between(correction.levels, confidence, definition),
            None => Interval::Degenerate {
                reason: "the statistic does not move when one value is left out".to_owned(),
            },
        }
    }

    /// Bias correction and acceleration; `None` where leaving out values changes nothing (0/0).
    #[must_use]
    pub fn correction(&self, confidence: f64) -> Option<Correction> {
        let (below, up_to) = self.law.shares(self.estimate);
        let z0 = normal_quantile(f64::midpoint(below, up_to))?;
        let acceleration = acceleration(&self.jackknife)?;
        let levels = corrected_levels(z0, acceleration, confidence)?;
        Some(Correction { z0, acceleration, levels })
    }

    fn between(&self, at: (f64, f64), confidence: f64, definition: QuantileType) -> Interval {
        let quantile = |p| match definition {
            QuantileType::InverseEcdf => self.law.quantile_type1(p),
            _ => self.law.quantile_type7(p),
        };
        match (quantile(at.0), quantile(at.1)) {
            (Some(low), Some(high)) => Interval::Interval { low, high, confidence },
            _ => Interval::Degenerate { reason: format!("no confidence of {confidence}") },
        }
    }
}

/// Phi(z0 + (z0 + z) / (1 - a (z0 + z))) at both tails; `None` where the transformation breaks down.
pub(super) fn corrected_levels(z0: f64, a: f64, confidence: f64) -> Option<(f64, f64)> {
    let z = normal_quantile(upper_tail(confidence))?;
    let level = |z: f64| {
        let shifted = z0 + z;
        let divisor = 1.0 - a * shifted;
        if divisor > 0.0 { normal_cdf(z0 + shifted / divisor) } else { None }
    };
    Some((level(-z)?, level(z)?))
}
