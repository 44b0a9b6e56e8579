//! What pairing needs of an observation.

use std::net::SocketAddr;

use protocol::receipt::{Contact, Phase, Receipt};
use protocol::{Nanos, TraceId};
use serde::Deserialize;

use crate::endpoint::{Leg, Role};
use crate::observation::{Observation, Outcome};

/// One leg: the keys of a line of `kernel.jsonl` that pairing needs (`docs/formats.md`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LegRow {
    /// Correlation.
    pub trace_id: Option<TraceId>,
    /// VIP or backend.
    pub endpoint: SocketAddr,
    /// Which leg.
    pub leg: Leg,
    /// Role of the endpoint.
    pub role: Role,
    /// The connection's other side.
    pub peer: SocketAddr,
    /// Number of the connection.
    pub connection: u64,
    /// Number of the request on it.
    pub request_index: u64,
    /// First byte of the request.
    pub request_first_ns: Option<Nanos>,
    /// Last byte of the request.
    pub request_end_ns: Option<Nanos>,
    /// Last repetition of request bytes before the response began.
    pub request_resent_ns: Option<Nanos>,
    /// First byte of the response.
    pub first_byte_ns: Option<Nanos>,
    /// First token.
    pub first_token_ns: Option<Nanos>,
    /// The response's own end.
    pub framing_end_ns: Option<Nanos>,
    /// Status of the response.
    pub status: Option<u16>,
    /// Class.
    pub outcome: Outcome,
    /// Segments of the request that repeated bytes.
    pub request_retransmits: u64,
    /// Segments of the response that repeated bytes.
    pub response_retransmits: u64,
    /// Round trip to the endpoint.
    pub handshake_rtt_ns: Option<u64>,
    /// Round trip to the client, its pause included.
    pub client_rtt_upper_bound_ns: Option<u64>,
    /// Backend that the receipt names for prefill.
    pub receipt_prefill: Option<SocketAddr>,
    /// Backend that the receipt names for decode.
    pub receipt_decode: Option<SocketAddr>,
}

impl LegRow {
    /// The same from an observation that has not been written yet.
    #[must_use]
    pub fn new(observation: &Observation) -> Self {
        let exchange = &observation.exchange;
        let record = &exchange.response;
        let receipt = observation.receipt().map(|(receipt, _)| receipt);
        Self {
            trace_id: exchange.trace_id,
            endpoint: exchange.endpoint,
            leg: observation.role.leg(),
            role: observation.role,
            peer: exchange.peer,
            connection: exchange.connection.0,
            request_index: exchange.index,
            request_first_ns: exchange.request_first,
            request_end_ns: exchange.request_end,
            request_resent_ns: exchange.request_resent,
            first_byte_ns: record.first_byte,
            first_token_ns: record.first_token,
            framing_end_ns: record.framing_end,
            status: record.status(),
            outcome: observation.outcome(),
            request_retransmits: exchange.request_retransmits,
            response_retransmits: exchange.response_retransmits,
            handshake_rtt_ns: exchange.handshake_rtt_ns,
            client_rtt_upper_bound_ns: exchange.client_rtt_upper_bound_ns,
            receipt_prefill: receipt.map(|it| it.prefill),
            receipt_decode: receipt.map(|it| it.decode),
        }
    }

    /// What the response says about its own delivery.
    #[must_use]
    pub fn receipt(&self) -> Option<Receipt> {
        Some(Receipt { prefill: self.receipt_prefill?, decode: self.receipt_decode? })
    }

    /// The backend answered: a retry went elsewhere otherwise.
    #[must_use]
    pub fn answered(&self) -> bool {
        self.status == Some(200)
    }

    /// Time to first token of this leg, in nanoseconds.
    #[must_use]
    pub fn ttft_ns(&self) -> Option<i64> {
        Some(self.first_token_ns?.since(self.request_end_ns?))
    }

    pub(super) fn contact(&self) -> Contact {
        let role = match self.role {
            Role::Prefill => Some(Phase::Prefill),
            Role::Decode => Some(Phase::Decode),
            Role::Vip | Role::Backend => None,
        };
        let (began, answered) = (self.request_first_ns, self.answered());
        Contact { backend: self.endpoint, role, began, answered }
    }
}
