//! Wire forms: a line of `inflight.jsonl`, and an endpoint's gauges (`docs/formats.md`).

use std::net::SocketAddr;

use protocol::Nanos;
use serde::Serialize;

use super::ConnectionSource;
use super::interval::Interval;
use crate::endpoint::Role;

/// Name and version of a line of `inflight.jsonl`.
pub const INFLIGHT_SCHEMA: &str = "goodput.inflight/1";
/// Name and version of the gauges.
pub const GAUGES_SCHEMA: &str = "goodput.gauges/1";

/// One line of `inflight.jsonl`; keys are written in this order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InflightRow {
    schema: &'static str,
    start_ns: Nanos,
    end_ns: Nanos,
    endpoint: SocketAddr,
    role: Role,
    connections_mean: f64,
    connections_peak: u64,
    requests_mean: f64,
    requests_peak: u64,
    source: ConnectionSource,
}

impl InflightRow {
    pub(super) fn new(
        endpoint: SocketAddr,
        role: Role,
        source: ConnectionSource,
        connections: &Interval,
        requests: &Interval,
    ) -> Self {
        Self {
            schema: INFLIGHT_SCHEMA,
            start_ns: requests.start,
            end_ns: requests.end,
            endpoint,
            role,
            connections_mean: connections.mean,
            connections_peak: connections.peak,
            requests_mean: requests.mean,
            requests_peak: requests.peak,
            source,
        }
    }

    pub(super) fn order(&self) -> (Nanos, SocketAddr) {
        (self.start_ns, self.endpoint)
    }
}

/// What is in flight at one endpoint now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GaugeRow {
    /// The endpoint.
    pub endpoint: SocketAddr,
    /// Its role.
    pub role: Role,
    /// Connections.
    pub connections: u64,
    /// Requests.
    pub requests: u64,
    /// Where the count of connections comes from.
    pub source: ConnectionSource,
}
