//! Repetitions as clusters: the bootstrap of good / attempted that resamples whole repetitions.

use super::Interval;
use super::bootstrap::Bootstrap;
use super::distribution::{normal_cdf, t_quantile, upper_tail};
use super::proportion::Counts;
use super::quantile::QuantileType;

/// The enumerated bootstrap of sum good / sum attempted over repetitions.
///
/// Integers are summed and divided once, so that equal fractions compare equal. `None` unless 2 to 12
/// repetitions attempted something each.
#[must_use]
pub fn cluster_bootstrap(repetitions: &[Counts]) -> Option<Bootstrap> {
    Bootstrap::enumerate(repetitions.len(), |counts| {
        let drawn = counts.iter().zip(repetitions);
        let pooled = drawn.fold(Counts::default(), |sum, (times, rep)| {
            let times = *times as u64;
            sum.plus(Counts { good: rep.good * times, attempted: rep.attempted * times })
        });
        pooled.fraction()
    })
}

/// The tail probability that widens a percentile interval of `groups` repetitions to about its nominal
/// coverage: Phi(-sqrt(G/(G-1)) t), after Hesterberg (Am. Stat. 69:371, 2015).
///
/// At three repetitions it saturates at the extremes: the t interval covers better everywhere.
#[must_use]
pub fn expanded_tail(groups: usize, confidence: f64) -> Option<f64> {
    let df = groups.checked_sub(1).filter(|df| *df > 0)? as f64;
    let t = t_quantile(upper_tail(confidence), df)?;
    normal_cdf(-(groups as f64 / df).sqrt() * t)
}

/// Percentile interval at the expanded level.
#[must_use]
pub fn expanded_percentile(bootstrap: &Bootstrap, confidence: f64) -> Interval {
    let Some(tail) = expanded_tail(bootstrap.jackknife.len(), confidence) else {
        return Interval::TooFew { have: bootstrap.jackknife.len(), need: 2 };
    };
    match bootstrap.percentile(1.0 - 2.0 * tail, QuantileType::Linear) {
        Interval::Interval { low, high, .. } => Interval::Interval { low, high, confidence },
        other => other,
    }
}
