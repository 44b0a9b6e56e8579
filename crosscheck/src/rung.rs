//! One arm at one rate, over repetitions: integers as long as possible.

use crate::special::{chi2_quantile, normal_quantile, t_quantile};

/// Good and attempted requests of one repetition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Good.
    pub good: u64,
    /// Attempted.
    pub attempted: u64,
}

impl Tally {
    fn share(self) -> f64 {
        self.good as f64 / self.attempted as f64
    }
}

/// An interval by its ends.
pub type Ends = (f64, f64);

/// Requests of all repetitions together.
#[must_use]
pub fn pooled(tallies: &[Tally]) -> Tally {
    tallies.iter().fold(Tally::default(), |sum, one| Tally {
        good: sum.good + one.good,
        attempted: sum.attempted + one.attempted,
    })
}

/// good / attempted of all together; nothing when nothing was attempted.
#[must_use]
pub fn fraction(tallies: &[Tally]) -> Option<f64> {
    let sum = pooled(tallies);
    (sum.attempted > 0).then(|| sum.share())
}

/// Whether good / attempted reaches a target written as `numerator / denominator`, in integers.
#[must_use]
pub fn reaches(tally: Tally, (numerator, denominator): (u64, u64)) -> bool {
    tally.attempted > 0
        && u128::from(tally.good) * u128::from(denominator)
            >= u128::from(numerator) * u128::from(tally.attempted)
}

/// Mean and variance (n - 1) of the shares. The variance is the mean square of all differences, halved: no mean
/// enters it.
#[must_use]
pub fn spread(shares: &[f64]) -> Option<(f64, f64)> {
    let count = shares.len() as f64;
    if shares.len() < 2 {
        return None;
    }
    let mean = shares.iter().sum::<f64>() / count;
    let mut squares = 0.0;
    for (place, one) in shares.iter().enumerate() {
        squares += shares[..place].iter().map(|other| (one - other).powi(2)).sum::<f64>();
    }
    Some((mean, squares / (count * (count - 1.0))))
}

/// Shares of the repetitions.
#[must_use]
pub fn shares(tallies: &[Tally]) -> Vec<f64> {
    tallies.iter().filter(|tally| tally.attempted > 0).map(|tally| tally.share()).collect()
}

/// The t interval over repetitions; nothing below two of them or when they do not vary.
#[must_use]
pub fn t_interval(shares: &[f64], confidence: f64) -> Option<Ends> {
    let (mean, variance) = spread(shares)?;
    let count = shares.len() as f64;
    let half = t_quantile(f64::midpoint(1.0, confidence), count - 1.0) * (variance / count).sqrt();
    (variance > 0.0).then_some((mean - half, mean + half))
}

/// Repetitions as clusters against requests as one pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clustering {
    /// Chi-square of the repetitions' shares, divided by its degrees of freedom: 1 when requests are independent.
    pub phi: f64,
    /// Where `phi` lies 99 % of the time then.
    pub band: Ends,
    /// Half width of the t interval over repetitions.
    pub half_width_clusters: f64,
    /// Half width that a bootstrap of pooled requests tends to (normal).
    pub half_width_pooled: f64,
}

impl Clustering {
    /// `AGREES`, `OVERDISPERSED` (the pool is too narrow) or `UNDERDISPERSED` (it is too wide).
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self.phi {
            phi if phi > self.band.1 => "OVERDISPERSED",
            phi if phi < self.band.0 => "UNDERDISPERSED",
            _ => "AGREES",
        }
    }
}

/// Compares the two; nothing where all or none are good, or below two repetitions.
#[must_use]
pub fn clustering(tallies: &[Tally], confidence: f64) -> Option<Clustering> {
    let share = fraction(tallies)?;
    let noise = share * (1.0 - share);
    let (low, high) = t_interval(&shares(tallies), confidence)?;
    if noise <= 0.0 {
        return None;
    }
    let freedom = tallies.len() as f64 - 1.0;
    let square = |tally: &Tally| {
        let expected = tally.attempted as f64 * share;
        (tally.good as f64 - expected).powi(2) / (tally.attempted as f64 * noise)
    };
    let all = pooled(tallies).attempted as f64;
    Some(Clustering {
        phi: tallies.iter().map(square).sum::<f64>() / freedom,
        band: (chi2_quantile(0.005, freedom) / freedom, chi2_quantile(0.995, freedom) / freedom),
        half_width_clusters: (high - low) / 2.0,
        half_width_pooled: normal_quantile(f64::midpoint(1.0, confidence)) * (noise / all).sqrt(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tallies(good: &[u64], attempted: u64) -> Vec<Tally> {
        good.iter().map(|good| Tally { good: *good, attempted }).collect()
    }

    /// scipy 1.17.1: t.interval(0.95, 4, mean, sem) of 0.90 0.92 0.91 0.93 0.89.
    #[test]
    fn the_interval_of_five_repetitions() {
        let five = tallies(&[90, 92, 91, 93, 89], 100);
        assert_eq!(pooled(&five), Tally { good: 455, attempted: 500 });
        let (low, high) = t_interval(&shares(&five), 0.95).unwrap();
        assert!(
            (low - 0.890_367_568).abs() < 1e-9 && (high - 0.929_632_432).abs() < 1e-9,
            "{low} {high}"
        );
        assert_eq!(t_interval(&[0.9, 0.9, 0.9], 0.95), None);
        assert_eq!(t_interval(&[0.9], 0.95), None);
        assert_eq!(fraction(&[]), None);
    }

    #[test]
    fn a_target_is_reached_by_equality() {
        assert!(reaches(Tally { good: 9, attempted: 10 }, (9, 10)));
        assert!(!reaches(Tally { good: 899_999, attempted: 1_000_000 }, (9, 10)));
        assert!(!reaches(Tally::default(), (9, 10)));
    }

    #[test]
    fn repetitions_that_differ_more_than_chance_are_overdispersed() {
        assert_eq!(
            clustering(&tallies(&[90, 92, 88, 91, 89], 100), 0.95).unwrap().word(),
            "AGREES"
        );
        assert_eq!(
            clustering(&tallies(&[99, 70, 95, 60, 98], 100), 0.95).unwrap().word(),
            "OVERDISPERSED"
        );
        let still = tallies(&[9000, 9001, 9000, 8999, 9000], 10_000);
        assert_eq!(clustering(&still, 0.95).unwrap().word(), "UNDERDISPERSED");
        assert_eq!(clustering(&tallies(&[100, 100], 100), 0.95), None);
    }

    proptest! {
        #[test]
        fn the_variance_over_pairs_is_the_usual_one(shares in prop::collection::vec(0.0..1.0_f64, 2..20)) {
            let (mean, variance) = spread(&shares).unwrap();
            let usual = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>()
                / (shares.len() as f64 - 1.0);
            prop_assert!((variance - usual).abs() < 1e-12);
        }
    }
}
