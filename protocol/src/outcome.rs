//! The one classifier of a response, from the evidence of its bytes alone.
//!
//! Client and agent both use it, so that they can only disagree where they saw different bytes. The
//! client puts its own classes (cancelled, lost, connect_error, timeouts) around it.

use serde::{Deserialize, Serialize};

use crate::http1::{Close, Framing, UnknownCause};
use crate::timeline::{TimelineRecord, Tpot};

/// Class of one response. Of several that fit, the first in this order is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamOutcome {
    /// The final status is not 200.
    HttpStatus(u16),
    /// An error object or event in the stream, or the finish reason `abort` or `error`.
    InbandError,
    /// Evidence is missing: nothing below this line can be told.
    Unknown(OutcomeUnknown),
    /// HTTP framing was broken.
    Framing,
    /// A payload that is neither `[DONE]` nor a chunk, or exceeds the bound.
    BadPayload,
    /// The connection was reset before the message's own end.
    Reset,
    /// The connection closed before the message's own end, or the message ended without terminal
    /// evidence (a finish reason or `[DONE]`).
    Truncated,
    /// Still under way: neither ended nor closed.
    Open,
    /// A complete stream without a token.
    NoToken,
    /// Good, with one output token: TPOT does not exist.
    SingleToken,
    /// Good.
    Ok,
}

/// What is missing for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeUnknown {
    /// Bytes were lost or not captured.
    LostBytes,
    /// The connection became a tunnel.
    Opaque,
    /// A content or transfer coding hides a body that is otherwise complete.
    OpaqueEncoding,
}

impl StreamOutcome {
    /// Classifies what `record` holds.
    #[must_use]
    pub fn of(record: &TimelineRecord) -> Self {
        by_content(record)
            .or_else(|| by_framing(record))
            .or_else(|| by_end(record))
            .unwrap_or_else(|| by_tokens(record))
    }

    /// Ok or single-token: the response was delivered whole.
    #[must_use]
    pub fn is_delivered(self) -> bool {
        matches!(self, Self::Ok | Self::SingleToken)
    }

    /// Stable name of the class, without its detail.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            Self::HttpStatus(_) => "http_status",
            Self::InbandError => "inband_error",
            Self::Unknown(_) => "unknown",
            Self::Framing => "framing",
            Self::BadPayload => "bad_payload",
            Self::Reset => "reset",
            Self::Truncated => "truncated",
            Self::Open => "open",
            Self::NoToken => "no_token",
            Self::SingleToken => "single_token",
            Self::Ok => "ok",
        }
    }
}

fn by_content(record: &TimelineRecord) -> Option<StreamOutcome> {
    match record.status() {
        Some(status) if status != 200 => Some(StreamOutcome::HttpStatus(status)),
        _ => record.inband_error.is_some().then_some(StreamOutcome::InbandError),
    }
}

fn by_framing(record: &TimelineRecord) -> Option<StreamOutcome> {
    match record.framing {
        Framing::Invalid { .. } => Some(StreamOutcome::Framing),
        Framing::Unknown { why } => Some(StreamOutcome::Unknown(match why {
            UnknownCause::LostBytes => OutcomeUnknown::LostBytes,
            UnknownCause::Opaque => OutcomeUnknown::Opaque,
        })),
        Framing::Incomplete | Framing::Valid => {
            record.bad_payload.is_some().then_some(StreamOutcome::BadPayload)
        }
    }
}

fn by_end(record: &TimelineRecord) -> Option<StreamOutcome> {
    let terminal = record.finish.is_some() || record.done.is_some();
    match (record.framing, record.close) {
        (Framing::Valid, _) if record.opaque_encoding => {
            Some(StreamOutcome::Unknown(OutcomeUnknown::OpaqueEncoding))
        }
        (Framing::Valid, _) if terminal => None,
        (Framing::Valid, _) | (_, Some(Close::Eof)) => Some(StreamOutcome::Truncated),
        (_, Some(Close::Reset)) => Some(StreamOutcome::Reset),
        (_, None) => Some(StreamOutcome::Open),
    }
}

fn by_tokens(record: &TimelineRecord) -> StreamOutcome {
    match record.tpot() {
        Tpot::NoToken => StreamOutcome::NoToken,
        Tpot::SingleToken => StreamOutcome::SingleToken,
        Tpot::Coalesced | Tpot::Value(_) => StreamOutcome::Ok,
    }
}
