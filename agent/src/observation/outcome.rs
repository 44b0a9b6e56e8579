//! Classes of requests, as an observer on the wire can tell them.

use protocol::{OutcomeUnknown, StreamOutcome};
use serde::{Deserialize, Serialize};

use crate::flow::FinishedExchange;

/// Class of one request; names as in `docs/formats.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Good.
    Ok,
    /// Good, with one output token.
    SingleToken,
    /// The status is not 200.
    HttpStatus,
    /// An error inside the stream.
    InbandError,
    /// HTTP framing was broken.
    Framing,
    /// A payload that can't be read.
    BadPayload,
    /// Reset before the response's own end.
    Reset,
    /// Closed before the response's own end, or ended without terminal evidence.
    Truncated,
    /// A complete stream without a token.
    NoToken,
    /// The client closed or reset before the response's own end.
    AbortedByClient,
    /// Not HTTP/1 (TLS, HTTP/2, a tunnel), or a body that a content coding hides.
    Opaque,
    /// Evidence is missing.
    Unknown,
}

impl Outcome {
    /// Every class.
    pub const ALL: [Self; 12] = [
        Self::Ok,
        Self::SingleToken,
        Self::HttpStatus,
        Self::InbandError,
        Self::Framing,
        Self::BadPayload,
        Self::Reset,
        Self::Truncated,
        Self::NoToken,
        Self::AbortedByClient,
        Self::Opaque,
        Self::Unknown,
    ];

    /// Its name in rows and labels.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::SingleToken => "single_token",
            Self::HttpStatus => "http_status",
            Self::InbandError => "inband_error",
            Self::Framing => "framing",
            Self::BadPayload => "bad_payload",
            Self::Reset => "reset",
            Self::Truncated => "truncated",
            Self::NoToken => "no_token",
            Self::AbortedByClient => "aborted_by_client",
            Self::Opaque => "opaque",
            Self::Unknown => "unknown",
        }
    }

    /// Class of `exchange`. That the client left explains only an end that nothing else explains:
    /// whoever meets an error or broken framing leaves, too.
    #[must_use]
    pub fn of(exchange: &FinishedExchange) -> Self {
        if exchange.opaque.is_some() {
            return Self::Opaque;
        }
        match exchange.stream_outcome() {
            StreamOutcome::Truncated | StreamOutcome::Reset | StreamOutcome::Open
                if exchange.aborted =>
            {
                Self::AbortedByClient
            }
            StreamOutcome::HttpStatus(_) => Self::HttpStatus,
            StreamOutcome::InbandError => Self::InbandError,
            StreamOutcome::Framing => Self::Framing,
            StreamOutcome::BadPayload => Self::BadPayload,
            StreamOutcome::Reset => Self::Reset,
            StreamOutcome::Truncated => Self::Truncated,
            StreamOutcome::NoToken => Self::NoToken,
            StreamOutcome::SingleToken => Self::SingleToken,
            StreamOutcome::Ok => Self::Ok,
            StreamOutcome::Unknown(OutcomeUnknown::Opaque | OutcomeUnknown::OpaqueEncoding) => {
                Self::Opaque
            }
            StreamOutcome::Open | StreamOutcome::Unknown(OutcomeUnknown::LostBytes) => {
                Self::Unknown
            }
        }
    }
}
