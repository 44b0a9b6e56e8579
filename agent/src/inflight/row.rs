//! Wire forms: a line of `inflight.jsonl`, and an endpoint's gauges (`docs/formats.md`).

use std::net::SocketAddr;

use protocol::Nanos;
use serde::Serialize;

use super::account::{Agreement, Evidence};
use super::interval::Interval;
use super::{Certainty, ConnectionSource};
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
    connections_mean: Option<f64>,
    connections_peak: Option<u64>,
    requests_mean: f64,
    requests_peak: u64,
    source: ConnectionSource,
    certainty: Certainty,
}

impl InflightRow {
    pub(super) fn new(
        endpoint: SocketAddr,
        role: Role,
        source: ConnectionSource,
        connections: Option<&Interval>,
        requests: &Interval,
    ) -> Self {
        Self {
            schema: INFLIGHT_SCHEMA,
            start_ns: requests.start,
            end_ns: requests.end,
            endpoint,
            role,
            connections_mean: connections.map(|it| it.mean),
            connections_peak: connections.map(|it| it.peak),
            requests_mean: requests.mean,
            requests_peak: requests.peak,
            source,
            certainty: source.certainty(),
        }
    }

    pub(super) fn order(&self) -> (Nanos, SocketAddr) {
        (self.start_ns, self.endpoint)
    }
}

/// What is in flight at one endpoint now; keys are written in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GaugeRow {
    /// The endpoint.
    pub endpoint: SocketAddr,
    /// Its role.
    pub role: Role,
    /// Connections; `None` where nobody can tell.
    pub connections: Option<u64>,
    /// Requests.
    pub requests: u64,
    /// Where the count of connections comes from.
    pub source: ConnectionSource,
    /// What the count of connections is worth.
    pub certainty: Certainty,
    /// Why the endpoint is taken for a socket of this host.
    pub evidence: Evidence,
    /// How far tracepoint and list of sockets agree.
    #[serde(flatten)]
    pub agreement: Agreement,
    /// Connections that an estimate ended because they were silent.
    pub expired: u64,
    /// Connections that an estimate had no room for.
    pub untracked: u64,
    /// Packets towards the endpoint are seen, and none from it.
    pub responses_unobserved: bool,
}
