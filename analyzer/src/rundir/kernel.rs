//! A line of `kernel.jsonl`: what an agent saw of one request on one leg.

use std::net::SocketAddr;

use protocol::TraceId;
use protocol::receipt::Receipt;
use serde::{Deserialize, Serialize};

use crate::records::Versioned;

/// Which side of the gateway a connection is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leg {
    /// From the client to a VIP.
    Client,
    /// From the gateway to a backend.
    Backend,
}

/// One observation. Stamps are CLOCK_MONOTONIC nanoseconds of the agent's host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelRow {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// 32 hex digits of `traceparent`, where the request carried one.
    pub trace_id: Option<TraceId>,
    /// address:port of the VIP or backend.
    pub endpoint: String,
    /// Which side of the gateway.
    pub leg: Leg,
    /// `vip`, `backend`, `prefill` or `decode`.
    pub role: Option<String>,
    /// Segment with the request's last body byte.
    pub request_end_ns: Option<u64>,
    /// Segment that ended the first token event.
    pub first_token_ns: Option<u64>,
    /// Segment that ended the last token event.
    pub last_token_ns: Option<u64>,
    /// Number of token-bearing events.
    pub token_events: Option<u64>,
    /// Output tokens from usage.
    pub completion_tokens: Option<u64>,
    /// Status of the response.
    pub status: Option<u16>,
    /// Backend that LoxiLB's receipt names for the prefill.
    pub receipt_prefill: Option<SocketAddr>,
    /// The same for the decode.
    pub receipt_decode: Option<SocketAddr>,
    /// `valid`, `invalid` or `unknown`.
    pub framing: Option<String>,
    /// Outcome by the bytes on the wire.
    pub outcome: Option<String>,
    /// Segments of the request and its response.
    pub segments: Option<u64>,
    /// The connection is older than the agent.
    #[serde(default)]
    pub adopted: bool,
}

impl Versioned for KernelRow {
    const SCHEMA: &'static str = "goodput.kernel/1";
}

impl KernelRow {
    /// Request end to first token: the kernel's TTFT of this leg. Negative only when stamps are wrong.
    #[must_use]
    pub fn ttft_ns(&self) -> Option<i64> {
        difference(self.first_token_ns?, self.request_end_ns?)
    }

    /// What the response said of its own delivery.
    #[must_use]
    pub fn receipt(&self) -> Option<Receipt> {
        Some(Receipt { prefill: self.receipt_prefill?, decode: self.receipt_decode? })
    }

    /// (last token - first token) / (output tokens - 1); nothing for fewer than two tokens or events.
    #[must_use]
    pub fn tpot_ns(&self) -> Option<i64> {
        let tokens = self.completion_tokens.or(self.token_events)?;
        if tokens < 2 || self.token_events.is_some_and(|events| events < 2) {
            return None;
        }
        let span = difference(self.last_token_ns?, self.first_token_ns?)?;
        Some(span / i64::try_from(tokens - 1).ok()?)
    }
}

fn difference(later: u64, earlier: u64) -> Option<i64> {
    i64::try_from(i128::from(later) - i128::from(earlier)).ok()
}
