//! Five figures of a set of durations, in microseconds.

use serde::{Deserialize, Serialize};

use crate::stats::quantile_type1;

/// Type 1 quantiles: every figure is a value that occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of values.
    pub n: u64,
    /// Smallest, us; nothing without values, like the others.
    pub min_us: Option<f64>,
    /// Median, us.
    pub p50_us: Option<f64>,
    /// 90th percentile, us.
    pub p90_us: Option<f64>,
    /// 99th percentile, us.
    pub p99_us: Option<f64>,
    /// Largest, us.
    pub max_us: Option<f64>,
}

impl Distribution {
    /// From nanoseconds, in any order.
    #[must_use]
    pub fn of_ns(values: &[i64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let at = |p| quantile_type1(&sorted, p).map(micros);
        Self {
            n: sorted.len() as u64,
            min_us: at(0.0),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            max_us: at(1.0),
        }
    }
}

/// 99th percentile of the magnitudes.
pub(super) fn magnitude_p99_us(values: &[i64]) -> Option<f64> {
    let mut sorted: Vec<i64> = values.iter().map(|value| value.saturating_abs()).collect();
    sorted.sort_unstable();
    quantile_type1(&sorted, 0.99).map(micros)
}

fn micros(ns: i64) -> f64 {
    ns as f64 / 1e3
}
