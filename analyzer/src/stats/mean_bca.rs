//! BCa of a mean within one run: the one interval that needs random draws.
//!
//! Poisson(1) weights stand for resampling with replacement, and the acceleration is the skewness in closed
//! form. Each resample draws from a generator of its own, seeded by its index, so that the result does not
//! depend on how many threads share the work.

use std::num::NonZeroUsize;
use std::sync::OnceLock;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::Interval;
use super::acceleration::acceleration_of_mean;
use super::bootstrap::corrected_levels;
use super::distribution::normal_quantile;
use super::law::Law;

/// Draws of [`mean_bca`] that a report uses.
pub const MEAN_RESAMPLES: u32 = 9_999;

/// BCa interval of the mean of `values` (latencies, ns) under independence within the run.
///
/// `seed` belongs in the manifest. The mean is a sum of integers divided once.
#[must_use]
pub fn mean_bca(
    values: &[u64],
    confidence: f64,
    resamples: u32,
    seed: u64,
    threads: NonZeroUsize,
) -> Interval {
    let too_few = Interval::TooFew { have: values.len(), need: 2 };
    if values.len() < 2 || resamples == 0 {
        return too_few;
    }
    let floats: Vec<f64> = values.iter().map(|value| *value as f64).collect();
    let Some(acceleration) = acceleration_of_mean(&floats) else {
        return Interval::Degenerate { reason: "every value is the same".to_owned() };
    };
    let estimate = values.iter().map(|v| u128::from(*v)).sum::<u128>() as f64 / values.len() as f64;
    let means = resample(values, resamples, seed, threads);
    let interval = Law::new(means.into_iter().map(|mean| (mean, 1)).collect()).and_then(|law| {
        let (below, up_to) = law.shares(estimate);
        let z0 = normal_quantile(f64::midpoint(below, up_to))?;
        let levels = corrected_levels(z0, acceleration, confidence)?;
        let (low, high) = (law.quantile_type7(levels.0)?, law.quantile_type7(levels.1)?);
        Some(Interval::Interval { low, high, confidence })
    });
    interval.unwrap_or(Interval::Degenerate {
        reason: "all resamples lie on one side of the mean".to_owned(),
    })
}

fn resample(values: &[u64], resamples: u32, seed: u64, threads: NonZeroUsize) -> Vec<f64> {
    let share = (resamples as usize).div_ceil(threads.get());
    let mut means = vec![0.0; resamples as usize];
    std::thread::scope(|scope| {
        for (part, chunk) in means.chunks_mut(share).enumerate() {
            scope.spawn(move || {
                for (offset, mean) in chunk.iter_mut().enumerate() {
                    *mean = one_mean(values, seed, (part * share + offset) as u64);
                }
            });
        }
    });
    means
}

/// The weighted mean of resample `number`. A draw without any weight has no mean and is drawn again.
fn one_mean(values: &[u64], seed: u64, number: u64) -> f64 {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(number);
    loop {
        let (mut sum, mut total) = (0_u128, 0_u64);
        for pair in values.chunks(2) {
            let bits = generator.next_u32();
            for (value, half) in pair.iter().zip([bits & 0xffff, bits >> 16]) {
                let weight = u64::from(poisson_weights()[half as usize]);
                sum += u128::from(weight) * u128::from(*value);
                total += weight;
            }
        }
        if total > 0 {
            return sum as f64 / total as f64;
        }
    }
}

/// Poisson(1) by its distribution function in steps of 1/65536.
fn poisson_weights() -> &'static [u8] {
    static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let (mut weight, mut probability) = (0_u8, (-1.0_f64).exp());
        let mut cumulative = probability;
        let mut table = Vec::with_capacity(1 << 16);
        for step in 0..1_u32 << 16 {
            while (f64::from(step) + 0.5) / 65_536.0 > cumulative {
                weight += 1;
                probability /= f64::from(weight);
                cumulative += probability;
            }
            table.push(weight);
        }
        table
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(n: usize) -> NonZeroUsize {
        NonZeroUsize::new(n).unwrap()
    }

    #[test]
    fn the_table_is_poisson_with_mean_and_variance_one() {
        let table = poisson_weights();
        assert_eq!(table.len(), 65_536);
        let mean = table.iter().map(|w| f64::from(*w)).sum::<f64>() / 65_536.0;
        let second = table.iter().map(|w| f64::from(*w).powi(2)).sum::<f64>() / 65_536.0;
        assert!((mean - 1.0).abs() < 1e-4 && (second - mean * mean - 1.0).abs() < 1e-3);
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let values: Vec<u64> = (0..200).map(|i| 1_000_000 + i * i * 977).collect();
        let one = mean_bca(&values, 0.95, 501, 7, threads(1));
        assert_eq!(one, mean_bca(&values, 0.95, 501, 7, threads(3)));
        assert_ne!(one, mean_bca(&values, 0.95, 501, 8, threads(1)));
        let mean = values.iter().sum::<u64>() as f64 / 200.0;
        let (low, high) = one.ends().unwrap();
        assert!(low < mean && mean < high);
    }

    #[test]
    fn draws_agree_with_the_normal_interval_of_even_data() {
        let values: Vec<u64> = (0..1000).map(|i| 1_000 + i).collect();
        let (low, high) = mean_bca(&values, 0.95, 2_000, 1, threads(2)).ends().unwrap();
        let half = 1.96 * (1000.0_f64.powi(2) / 12.0).sqrt() / 1000.0_f64.sqrt();
        assert!((((high - low) / 2.0) / half - 1.0).abs() < 0.08, "{low} {high} {half}");
    }

    #[test]
    fn nothing_to_resample_is_typed() {
        assert_eq!(mean_bca(&[5], 0.95, 99, 1, threads(1)), Interval::TooFew { have: 1, need: 2 });
        let flat = mean_bca(&[5, 5, 5], 0.95, 99, 1, threads(1));
        assert!(matches!(flat, Interval::Degenerate { .. }));
    }
}
