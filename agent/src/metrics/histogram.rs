//! Histograms with fixed bounds, in integer nanoseconds until they are exported.

/// Upper bounds of buckets, in microseconds, increasing; the last bucket is open.
pub type Bounds = &'static [u64];

/// 1 ms to 120 s, six a decade at nearly equal ratios.
pub const TTFT_BOUNDS: Bounds = &[
    1_000,
    1_500,
    2_000,
    3_000,
    5_000,
    7_000,
    10_000,
    15_000,
    20_000,
    30_000,
    50_000,
    70_000,
    100_000,
    150_000,
    200_000,
    300_000,
    500_000,
    700_000,
    1_000_000,
    1_500_000,
    2_000_000,
    3_000_000,
    5_000_000,
    7_000_000,
    10_000_000,
    15_000_000,
    20_000_000,
    30_000_000,
    50_000_000,
    70_000_000,
    120_000_000,
];

/// A whole request takes as long as its first token, or longer: three a decade up to 20 minutes.
pub const DURATION_BOUNDS: Bounds = &[
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    120_000_000,
    300_000_000,
    600_000_000,
    1_200_000_000,
];

/// 0.2 ms (several tokens a step) to 5 s (a backend that swaps), six a decade.
pub const TPOT_BOUNDS: Bounds = &[
    200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000, 5_000, 7_000, 10_000, 15_000, 20_000, 30_000,
    50_000, 70_000, 100_000, 150_000, 200_000, 300_000, 500_000, 700_000, 1_000_000, 1_500_000,
    2_000_000, 3_000_000, 5_000_000,
];

/// Durations, counted by bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    bounds: Bounds,
    counts: Vec<u64>,
    count: u64,
    sum_ns: u128,
}

impl Histogram {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], count: 0, sum_ns: 0 }
    }

    /// Counts a duration in nanoseconds; a bucket holds what is at most its bound.
    pub fn add(&mut self, ns: u64) {
        let bucket = self.bounds.partition_point(|bound| bound * 1000 < ns);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.count += 1;
        self.sum_ns += u128::from(ns);
    }

    /// Durations counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, in seconds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "an exported sum is a float")]
    pub fn sum_seconds(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }

    /// Upper bound in seconds and count of each bucket, not cumulated.
    #[must_use]
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = self.bounds.iter().map(|us| super::count_f64(*us) / 1e6);
        bounds.chain([f64::INFINITY]).zip(self.counts.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_bound_and_the_open_one_the_rest() {
        let mut histogram = Histogram::new(TTFT_BOUNDS);
        for ns in [0, 1_000_000, 1_000_001, 120_000_000_000, 120_000_000_001] {
            histogram.add(ns);
        }
        let buckets = histogram.buckets();
        assert_eq!(buckets[..2], [(0.001, 2), (0.0015, 1)]);
        assert_eq!(buckets[30..], [(120.0, 1), (f64::INFINITY, 1)]);
        assert_eq!(histogram.count(), 5);
        assert!((histogram.sum_seconds() - 240.002_000_002).abs() < 1e-9);
    }

    #[test]
    fn bounds_increase_by_steps_that_keep_quantiles_useful() {
        for (bounds, most) in [(TTFT_BOUNDS, 1.75), (TPOT_BOUNDS, 1.75), (DURATION_BOUNDS, 2.51)] {
            for pair in bounds.windows(2) {
                let ratio = crate::metrics::count_f64(pair[1]) / crate::metrics::count_f64(pair[0]);
                assert!(ratio > 1.3 && ratio < most, "{pair:?}");
            }
        }
        assert_eq!((TTFT_BOUNDS[0], TTFT_BOUNDS.last()), (1_000, Some(&120_000_000)));
    }
}
