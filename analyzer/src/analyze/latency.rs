//! Latency of a cell, for display: nothing is scored by it.

use serde::{Deserialize, Serialize};

use crate::records::RequestRecord;
use crate::stats::{QuantileInterval, quantile_interval, quantile_type7};

/// Pooled latency of delivered requests, ms, quantiles of type 7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Median TTFT from planned.
    pub ttft_p50_ms: Option<f64>,
    /// 99th percentile of it.
    pub ttft_p99_ms: Option<f64>,
    /// Median TTFT from the actual send.
    pub ttft_from_sent_p50_ms: Option<f64>,
    /// 99th percentile of it.
    pub ttft_from_sent_p99_ms: Option<f64>,
    /// Median TPOT.
    pub tpot_p50_ms: Option<f64>,
    /// 99th percentile of it.
    pub tpot_p99_ms: Option<f64>,
}

/// Intervals of the same quantiles (type 1) as if requests were independent, which queueing breaks. ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WithinRunIntervals {
    /// Median TTFT from planned.
    pub ttft_p50_ms: Option<QuantileInterval<f64>>,
    /// 99th percentile of it.
    pub ttft_p99_ms: Option<QuantileInterval<f64>>,
    /// Median TPOT.
    pub tpot_p50_ms: Option<QuantileInterval<f64>>,
    /// 99th percentile of it.
    pub tpot_p99_ms: Option<QuantileInterval<f64>>,
}

/// Both over the delivered ones among `rows`.
pub(super) fn latency<'a>(
    rows: impl Iterator<Item = &'a RequestRecord>,
    confidence: f64,
) -> (Latency, WithinRunIntervals) {
    let (mut ttft, mut from_sent, mut tpot) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows.filter(|row| row.class.is_delivered()) {
        ttft.extend(row.ttft_ns.map(|ns| ns as f64 / 1e6));
        from_sent.extend(row.ttft_from_sent_ns.map(|ns| ns as f64 / 1e6));
        tpot.extend(row.tpot_ns.map(|ns| ns as f64 / 1e6));
    }
    ttft.sort_by(f64::total_cmp);
    from_sent.sort_by(f64::total_cmp);
    tpot.sort_by(f64::total_cmp);
    let interval = |values: &[f64], p| quantile_interval(values, p, confidence);
    let latency = Latency {
        ttft_p50_ms: quantile_type7(&ttft, 0.5),
        ttft_p99_ms: quantile_type7(&ttft, 0.99),
        ttft_from_sent_p50_ms: quantile_type7(&from_sent, 0.5),
        ttft_from_sent_p99_ms: quantile_type7(&from_sent, 0.99),
        tpot_p50_ms: quantile_type7(&tpot, 0.5),
        tpot_p99_ms: quantile_type7(&tpot, 0.99),
    };
    let intervals = WithinRunIntervals {
        ttft_p50_ms: interval(&ttft, 0.5),
        ttft_p99_ms: interval(&ttft, 0.99),
        tpot_p50_ms: interval(&tpot, 0.5),
        tpot_p99_ms: interval(&tpot, 0.99),
    };
    (latency, intervals)
}
