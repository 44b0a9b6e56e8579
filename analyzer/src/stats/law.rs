//! A finite distribution: what a statistic takes over every equally likely resample.

use super::quantile::index;

/// Relative difference below which two values of a statistic count as equal: sums in another order.
const SAME: f64 = 1e-12;

/// Distinct values, ascending, each with the number of equally likely outcomes that give it.
#[derive(Clone, Debug, PartialEq)]
pub struct Law {
    points: Vec<(f64, u64)>,
    total: u64,
}

impl Law {
    /// Sorts the points and joins equal values; `None` when there are none or one is not finite.
    #[must_use]
    pub fn new(mut points: Vec<(f64, u64)>) -> Option<Self> {
        if points.is_empty() || points.iter().any(|(value, _)| !value.is_finite()) {
            return None;
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        let total = points.iter().map(|(_, weight)| weight).sum();
        Some(Self { points, total })
    }

    /// Values with their multiplicities, ascending.
    #[must_use]
    pub fn points(&self) -> &[(f64, u64)] {
        &self.points
    }

    /// Number of equally likely outcomes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Shares strictly below `value`, and below or equal to it. What differs in rounding only is equal.
    #[must_use]
    pub fn shares(&self, value: f64) -> (f64, f64) {
        let slack = SAME * value.abs();
        let share = |keep: &dyn Fn(f64) -> bool| {
            let kept = self.points.iter().filter(|(x, _)| keep(*x)).map(|(_, weight)| weight);
            kept.sum::<u64>() as f64 / self.total as f64
        };
        (share(&|x| x < value - slack), share(&|x| x <= value + slack))
    }

    /// Quantile of type 7; `None` unless `p` lies in 0..=1.
    #[must_use]
    pub fn quantile_type7(&self, p: f64) -> Option<f64> {
        if !(0.0..=1.0).contains(&p) {
            return None;
        }
        let position = (self.total - 1) as f64 * p;
        let below = self.at(position.floor());
        let above = self.at(position.ceil());
        Some(below + (above - below) * position.fract())
    }

    /// Quantile of type 1; `None` unless `p` lies in 0..=1.
    #[must_use]
    pub fn quantile_type1(&self, p: f64) -> Option<f64> {
        let rank = (self.total as f64 * p - 1e-9).ceil().max(1.0);
        (0.0..=1.0).contains(&p).then(|| self.at(rank - 1.0))
    }

    /// Mean over all outcomes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.points.iter().map(|(x, w)| x * *w as f64).sum::<f64>() / self.total as f64
    }

    /// Standard deviation over all outcomes. They are the whole population, hence no n-1.
    #[must_use]
    pub fn sd(&self) -> f64 {
        let mean = self.mean();
        let squares = self.points.iter().map(|(x, w)| (x - mean).powi(2) * *w as f64);
        (squares.sum::<f64>() / self.total as f64).sqrt()
    }

    /// The value at a 0-based rank among all outcomes.
    fn at(&self, rank: f64) -> f64 {
        let rank = index(rank) as u64;
        let mut seen = 0;
        for (value, weight) in &self.points {
            seen += weight;
            if rank < seen {
                return *value;
            }
        }
        self.points[self.points.len() - 1].0
    }
}
