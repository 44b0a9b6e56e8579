//! `requests.jsonl`: one line per attempted request.

use protocol::{Nanos, TraceId};
use serde::{Deserialize, Serialize};

use super::lines::Versioned;
use crate::outcome::Class;

/// Where the receive instants of a request come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StampSource {
    /// Every read had a kernel stamp.
    Kernel,
    /// None had; the client's clock was read after each.
    Clock,
    /// Some had.
    Mixed,
}

/// Where the output token count comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokensSource {
    /// The server's usage.
    Usage,
    /// Token-bearing events: a lower bound.
    Chunks,
}

/// Verdict on the framing of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FramingVerdict {
    /// Seen to its own end.
    Valid,
    /// A rule was broken.
    Invalid,
    /// Cut short, or never begun.
    Unknown,
}

/// Why a delivered response has no TPOT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TpotUndefined {
    /// One output token.
    SingleToken,
    /// Several tokens at one instant.
    Coalesced,
}

/// One attempted request. Instants are CLOCK_MONOTONIC nanoseconds of the client's host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// Place in the schedule.
    pub index: u64,
    /// Correlation.
    pub trace_id: TraceId,
    /// Number of the connection, from 0; `None` when none was opened.
    pub conn_id: Option<u64>,
    /// Requests that the connection had carried before, from 0; `None` without a connection.
    #[serde(default)]
    pub conn_request_index: Option<u64>,
    /// The connection had carried another request.
    #[serde(default)]
    pub conn_reused: bool,
    /// Times it was sent again because a reused connection ended before any byte of the response. The rest of
    /// the record is of the last time.
    #[serde(default)]
    pub retries: u32,
    /// When the schedule wanted it sent.
    pub planned_ns: Nanos,
    /// When the client took it up, just before it opened the connection.
    pub dispatched_ns: Option<Nanos>,
    /// When the connection was seen open; `None` on a reused one.
    pub connected_ns: Option<Nanos>,
    /// Clock read immediately before the write that carried the last request byte.
    pub sent_ns: Option<Nanos>,
    /// First byte of the response.
    pub first_byte_ns: Option<Nanos>,
    /// End of the response head.
    pub head_ns: Option<Nanos>,
    /// First event of the stream.
    pub first_event_ns: Option<Nanos>,
    /// First token-bearing event.
    pub first_token_ns: Option<Nanos>,
    /// First event with visible content.
    pub first_content_token_ns: Option<Nanos>,
    /// Last token-bearing event.
    pub last_token_ns: Option<Nanos>,
    /// `[DONE]`.
    pub done_ns: Option<Nanos>,
    /// End of the message by its own framing.
    pub framing_end_ns: Option<Nanos>,
    /// When the client let go of the request.
    pub end_ns: Nanos,
    /// Where the receive instants come from; `None` when nothing was read.
    pub stamp_source: Option<StampSource>,
    /// The first token's stamp may be that of later bytes; `None` without a token.
    pub coalesced_read: Option<bool>,
    /// Token-bearing events.
    pub token_events: u64,
    /// Output tokens.
    pub completion_tokens: Option<u64>,
    /// Prompt tokens by usage.
    pub prompt_tokens: Option<u64>,
    /// Prompt tokens from the prefix cache by usage.
    pub cached_tokens: Option<u64>,
    /// Where `completion_tokens` comes from.
    pub tokens_from: Option<TokensSource>,
    /// Status of the final head.
    pub status: Option<u16>,
    /// Last finish reason.
    pub finish_reason: Option<String>,
    /// `Retry-After`, as received.
    pub retry_after: Option<String>,
    /// First `id` of the stream.
    pub response_id: Option<String>,
    /// Verdict on the framing.
    pub framing: FramingVerdict,
    /// The rule that was broken.
    pub framing_rule: Option<String>,
    /// Offset of the offending byte in the response.
    pub framing_offset: Option<u64>,
    /// Outcome class.
    pub class: Class,
    /// Short reason, empty for delivered responses.
    pub detail: String,
    /// Status 504, or an error body or event that names a prefill or processing timeout: judged on all of it,
    /// where `detail` is cut.
    #[serde(default)]
    pub names_server_timeout: bool,
    /// An error object arrived.
    #[serde(default)]
    pub error_event: bool,
    /// A payload that is no chunk of the API, or a body that could not be read, arrived.
    #[serde(default)]
    pub unreadable_payload: bool,
    /// What another tool's export says of the delivery; `None` in what the replay records. It stands for the evidence
    /// of framing and terminal event, which exports lack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_delivered: Option<bool>,
    /// First token - planned: the headline.
    pub ttft_ns: Option<i64>,
    /// First token - sent.
    pub ttft_from_sent_ns: Option<i64>,
    /// (last token event - first token event) / (output tokens - 1), rounded down, at least 1.
    pub tpot_ns: Option<u64>,
    /// Why a delivered response has no TPOT.
    pub tpot_undefined: Option<TpotUndefined>,
    /// Request bytes written to the socket.
    pub request_bytes: u64,
    /// Response bytes read from the socket.
    pub response_bytes: u64,
}

impl Versioned for RequestRecord {
    const SCHEMA: &'static str = "goodput.request/1";
}
