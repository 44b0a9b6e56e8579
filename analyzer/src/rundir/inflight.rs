//! A line of `inflight.jsonl`.

use serde::{Deserialize, Serialize};

use crate::records::Versioned;

/// Requests and connections of one endpoint over one interval; means are time-weighted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InflightRow {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// Start of the interval, CLOCK_MONOTONIC ns of the agent's host.
    pub start_ns: u64,
    /// End of the interval.
    pub end_ns: u64,
    /// address:port.
    pub endpoint: String,
    /// `vip`, `backend`, `prefill` or `decode`.
    pub role: String,
    /// Mean number of requests in flight.
    pub requests_mean: f64,
    /// Largest number of requests in flight.
    pub requests_peak: f64,
    /// `tracepoint` or `packets`.
    pub source: String,
}

impl Versioned for InflightRow {
    const SCHEMA: &'static str = "goodput.inflight/1";
}
