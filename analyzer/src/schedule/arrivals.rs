//! Arrival processes: offsets in nanoseconds, in order, from integers wherever a draw is involved so
//! that every platform gets the same schedule.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

use super::ScheduleError;
use crate::trace::Row;

/// How arrivals are spread over the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Arrivals {
    /// The trace's own gaps, all stretched or shrunk alike to hit the rate. Order and bursts stay.
    Trace {
        /// Adds a seeded uniform delay of up to so many milliseconds of trace time to each row: loosens
        /// timestamps that were rounded to ticks. 0 leaves them.
        jitter_ms: u64,
    },
    /// A Poisson process of exactly the offered count: uniform order statistics over the window, which
    /// is the Poisson process given its count.
    Poisson,
    /// Equal gaps.
    Constant,
}

/// Trace row and offset of each request, in send order.
pub(super) fn offsets(
    arrivals: Arrivals,
    rows: &[Row],
    length_ns: u64,
    seed: u64,
) -> Result<Vec<(usize, u64)>, ScheduleError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    match arrivals {
        Arrivals::Trace { jitter_ms } => dilate(rows, length_ns, jitter_ms, &mut rng),
        Arrivals::Poisson => Ok(poisson(rows.len(), length_ns, &mut rng)),
        Arrivals::Constant => {
            Ok((0..rows.len()).map(|row| (row, fraction(row, rows.len(), length_ns))).collect())
        }
    }
}

fn dilate(
    rows: &[Row],
    length_ns: u64,
    jitter_ms: u64,
    rng: &mut ChaCha8Rng,
) -> Result<Vec<(usize, u64)>, ScheduleError> {
    let jitter_ns = jitter_ms.saturating_mul(1_000_000);
    let mut times: Vec<(u64, usize)> = rows
        .iter()
        .enumerate()
        .map(|(row, content)| {
            (content.arrival_ns.saturating_add(scale(rng.next_u64(), jitter_ns)), row)
        })
        .collect();
    times.sort_unstable();
    let first = times.first().map_or(0, |time| time.0);
    let span = times.last().map_or(0, |time| time.0) - first;
    if span == 0 && rows.len() > 1 {
        return Err(ScheduleError::NoSpan(rows.len()));
    }
    // N requests have N - 1 gaps; the window also holds the gap that follows the last one.
    let last_offset = fraction(rows.len() - 1, rows.len(), length_ns);
    let stretch = |time: u64| ratio(time - first, last_offset, span.max(1));
    Ok(times.into_iter().map(|(time, row)| (row, stretch(time))).collect())
}

fn poisson(count: usize, length_ns: u64, rng: &mut ChaCha8Rng) -> Vec<(usize, u64)> {
    let mut offsets: Vec<u64> = (0..count).map(|_| scale(rng.next_u64(), length_ns)).collect();
    offsets.sort_unstable();
    offsets.into_iter().enumerate().collect()
}

/// A 64-bit draw scaled to `0..bound`, as integers (Lemire 2019, without the rejection step: the bias
/// is below 2^-20 for windows up to a day).
fn scale(draw: u64, bound: u64) -> u64 {
    let wide = (u128::from(draw) * u128::from(bound)) >> 64;
    u64::try_from(wide).unwrap_or(u64::MAX)
}

fn fraction(part: usize, whole: usize, length_ns: u64) -> u64 {
    let wide = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    ratio(wide(part), length_ns, wide(whole).max(1))
}

/// `value * numerator / denominator`, rounded down.
fn ratio(value: u64, numerator: u64, denominator: u64) -> u64 {
    let wide = u128::from(value) * u128::from(numerator) / u128::from(denominator);
    u64::try_from(wide).unwrap_or(u64::MAX)
}

/// Squared coefficient of variation of the gaps between `offsets`, which are in order. `None` below
/// two gaps, or when all gaps are 0.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a statistic for people: 53 bits are plenty")]
pub fn burstiness(offsets: &[u64]) -> Option<f64> {
    let gaps: Vec<f64> =
        offsets.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect();
    let count = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / count;
    if gaps.len() < 2 || mean <= 0.0 {
        return None;
    }
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
    Some(variance / (mean * mean))
}
