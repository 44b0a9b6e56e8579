//! Requests that ended, per endpoint: what the worker feeds with every observation.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use protocol::http1::Framing;

use super::histogram::{DURATION_BOUNDS, Histogram, TPOT_BOUNDS, TTFT_BOUNDS};
use crate::endpoint::{Endpoint, Role};
use crate::observation::{Observation, Outcome};

/// Requests that ended at one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointBook {
    /// Its role.
    pub role: Role,
    /// Requests by class.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Responses whose HTTP framing broke a rule.
    pub framing_invalid: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// From the request's last byte to the first token.
    pub ttft: Histogram,
    /// Time per output token after the first.
    pub tpot: Histogram,
    /// From the request's first byte to the response's end.
    pub duration: Histogram,
}

impl EndpointBook {
    fn new(role: Role) -> Self {
        Self {
            role,
            outcomes: Outcome::ALL.into_iter().map(|outcome| (outcome, 0)).collect(),
            framing_invalid: 0,
            output_tokens: 0,
            ttft: Histogram::new(TTFT_BOUNDS),
            tpot: Histogram::new(TPOT_BOUNDS),
            duration: Histogram::new(DURATION_BOUNDS),
        }
    }

    /// Requests of every class.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.outcomes.values().sum()
    }

    fn observe(&mut self, observation: &Observation) {
        let exchange = &observation.exchange;
        *self.outcomes.entry(observation.outcome()).or_insert(0) += 1;
        if matches!(exchange.framing(), Framing::Invalid { .. }) {
            self.framing_invalid += 1;
        }
        self.output_tokens += exchange.response.output_tokens().0;
        let since = |start: Option<protocol::Nanos>, end: Option<protocol::Nanos>| {
            Some(end?.get().saturating_sub(start?.get()))
        };
        if let Some(ttft) = since(exchange.request_end, exchange.response.first_token) {
            self.ttft.add(ttft);
        }
        if let Some(tpot) = exchange.response.tpot().value() {
            self.tpot.add(tpot.floor_ns());
        }
        if let Some(duration) = since(exchange.request_first, exchange.end) {
            self.duration.add(duration);
        }
    }
}

/// Requests that ended, per configured endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book(BTreeMap<SocketAddr, EndpointBook>);

impl Book {
    /// Nothing has ended at `endpoints`.
    #[must_use]
    pub fn new(endpoints: &[Endpoint]) -> Self {
        let mut book = Self::default();
        book.set_endpoints(endpoints);
        book
    }

    /// Keeps exactly `endpoints`: those that stay keep their counts, so that no series is left
    /// behind by one that went.
    pub fn set_endpoints(&mut self, endpoints: &[Endpoint]) {
        let mut old = std::mem::take(&mut self.0);
        for endpoint in endpoints {
            let kept = old.remove(&endpoint.address).filter(|it| it.role == endpoint.role);
            let book = kept.unwrap_or_else(|| EndpointBook::new(endpoint.role));
            self.0.insert(endpoint.address, book);
        }
    }

    /// Counts a request that ended. One of an endpoint that is not watched any more is left out.
    pub fn observe(&mut self, observation: &Observation) {
        if let Some(book) = self.0.get_mut(&observation.exchange.endpoint) {
            book.observe(observation);
        }
    }

    #[cfg(test)]
    pub(crate) fn replace_ttft(&mut self, endpoint: SocketAddr, ttft: Histogram) {
        self.0.get_mut(&endpoint).unwrap().ttft = ttft;
    }

    /// Every endpoint, sorted by address.
    pub fn endpoints(&self) -> impl Iterator<Item = (&SocketAddr, &EndpointBook)> {
        self.0.iter()
    }
}
