//! Figures per endpoint.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use protocol::Tpot;
use protocol::http1::Framing;
use serde::Serialize;

use crate::endpoint::{Endpoint, Role};
use crate::flow::FlowEvent;
use crate::observation::{Observation, Outcome};

/// Order statistics: the smallest value that at least this share of the values does not exceed
/// (Hyndman and Fan, type 1). In nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// Values.
    pub count: usize,
    /// Median.
    pub p50_ns: u64,
    /// 99 of 100 values are not larger.
    pub p99_ns: u64,
}

impl Quantiles {
    /// `None` when there is no value.
    fn of(values: &mut [u64]) -> Option<Self> {
        values.sort_unstable();
        let at = |per_cent: usize| {
            let rank = (values.len() * per_cent).div_ceil(100).max(1);
            values.get(rank - 1).copied()
        };
        Some(Self { count: values.len(), p50_ns: at(50)?, p99_ns: at(99)? })
    }
}

/// Verdicts on responses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FramingCounts {
    /// Seen to their own end.
    pub valid: u64,
    /// A rule was broken.
    pub invalid: u64,
    /// No verdict.
    pub unknown: u64,
    /// Of the invalid ones, by rule.
    pub rules: BTreeMap<&'static str, u64>,
}

/// What one endpoint's streams were like.
#[derive(Clone, Debug, Serialize)]
pub struct EndpointSummary {
    /// Its address.
    pub endpoint: SocketAddr,
    /// Its role.
    pub role: Role,
    /// Connections seen to open, or first seen in the middle.
    pub connections: u64,
    /// Requests with a row.
    pub requests: u64,
    /// By class.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// By verdict.
    pub framing: FramingCounts,
    /// Last byte of the request to first token.
    pub ttft: Option<Quantiles>,
    /// Time per output token.
    pub tpot: Option<Quantiles>,
    /// Bytes of requests.
    pub request_bytes: u64,
    /// Bytes of responses.
    pub response_bytes: u64,
    /// Segments that repeated bytes.
    pub retransmits: u64,
    /// Response bytes that were lost or not captured.
    pub bytes_lost: u64,
}

struct Open {
    summary: EndpointSummary,
    ttft: Vec<u64>,
    tpot: Vec<u64>,
}

/// Figures in the making.
pub(super) struct Summaries(BTreeMap<SocketAddr, Open>);

impl Summaries {
    pub(super) fn new(endpoints: &[Endpoint]) -> Self {
        let open = |it: &Endpoint| (it.address, Open::new(*it));
        Self(endpoints.iter().map(open).collect())
    }

    pub(super) fn role(&self, endpoint: SocketAddr) -> Option<Role> {
        self.0.get(&endpoint).map(|open| open.summary.role)
    }

    pub(super) fn note(&mut self, event: &FlowEvent) {
        if let FlowEvent::ConnectionOpened { endpoint, .. } = event
            && let Some(open) = self.0.get_mut(endpoint)
        {
            open.summary.connections += 1;
        }
    }

    pub(super) fn observe(&mut self, observation: &Observation) {
        if let Some(open) = self.0.get_mut(&observation.exchange.endpoint) {
            open.observe(observation);
        }
    }

    pub(super) fn finish(self) -> Vec<EndpointSummary> {
        self.0.into_values().map(Open::finish).collect()
    }
}

impl Open {
    fn new(endpoint: Endpoint) -> Self {
        let summary = EndpointSummary {
            endpoint: endpoint.address,
            role: endpoint.role,
            connections: 0,
            requests: 0,
            outcomes: BTreeMap::new(),
            framing: FramingCounts::default(),
            ttft: None,
            tpot: None,
            request_bytes: 0,
            response_bytes: 0,
            retransmits: 0,
            bytes_lost: 0,
        };
        Self { summary, ttft: Vec::new(), tpot: Vec::new() }
    }

    fn observe(&mut self, observation: &Observation) {
        let (summary, exchange) = (&mut self.summary, &observation.exchange);
        summary.requests += 1;
        *summary.outcomes.entry(observation.outcome()).or_insert(0) += 1;
        summary.framing.count(exchange.framing());
        summary.request_bytes += exchange.request_bytes;
        summary.response_bytes += exchange.response.bytes;
        summary.retransmits += exchange.request_retransmits + exchange.response_retransmits;
        summary.bytes_lost += exchange.response.bytes_lost;
        let ttft = exchange.request_end.and_then(|end| exchange.response.ttft(end));
        self.ttft.extend(ttft.and_then(|ns| u64::try_from(ns).ok()));
        if let Tpot::Value(value) = exchange.response.tpot() {
            self.tpot.push(value.floor_ns());
        }
    }

    fn finish(mut self) -> EndpointSummary {
        let [ttft, tpot] = [&mut self.ttft, &mut self.tpot].map(|it| Quantiles::of(it));
        EndpointSummary { ttft, tpot, ..self.summary }
    }
}

impl FramingCounts {
    fn count(&mut self, framing: Framing) {
        match framing {
            Framing::Valid => self.valid += 1,
            Framing::Invalid { rule, .. } => {
                self.invalid += 1;
                *self.rules.entry(rule.code()).or_insert(0) += 1;
            }
            Framing::Incomplete | Framing::Unknown { .. } => self.unknown += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let mut values: Vec<u64> = (1..=200).rev().collect();
        let expected = Quantiles { count: 200, p50_ns: 100, p99_ns: 198 };
        assert_eq!(Quantiles::of(&mut values), Some(expected));
        assert_eq!(Quantiles::of(&mut [7]), Some(Quantiles { count: 1, p50_ns: 7, p99_ns: 7 }));
        assert_eq!(Quantiles::of(&mut []), None);
    }
}
