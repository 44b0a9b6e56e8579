//! What one response leaves behind: instants, counts and evidence, and no text of the answer.

use serde::{Deserialize, Serialize};

use super::tpot::Tpot;
use crate::Nanos;
use crate::http1::{BodyKind, Close, Framing, Tolerated};
use crate::openai::{ErrorInfo, Usage};

/// The final response head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeadInfo {
    /// Instant of the byte that ended the head.
    pub stamp: Nanos,
    /// Status code.
    pub status: u16,
    /// Minor version: 0 or 1.
    pub version_minor: u8,
    /// `Content-Type`, cut to 120 characters.
    pub content_type: Option<String>,
    /// `Content-Encoding`, cut to 120 characters.
    pub content_encoding: Option<String>,
    /// `Retry-After`, cut to 120 characters.
    pub retry_after: Option<String>,
    /// `X-Request-Id`, cut to 200 characters; some engines put the prefill/decode receipt there.
    pub request_id: Option<String>,
    /// How the body's end is found.
    pub body: BodyKind,
    /// The connection may carry another response after this one.
    pub keep_alive: bool,
}

/// How the body is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyFormat {
    /// No head yet, or no body.
    #[default]
    None,
    /// Server-sent events.
    EventStream,
    /// One JSON document: read as a single event that ends with the body.
    Json,
    /// The body of a status other than 200: only its error is kept.
    Error,
    /// A content or transfer coding hides it; only framing and first byte are judged.
    Opaque,
}

/// A finish reason and the instant of its event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finish {
    /// The reason, as sent.
    pub reason: String,
    /// Instant of its event.
    pub stamp: Nanos,
}

/// An error that arrived inside a 200 stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InbandError {
    /// Instant of its event.
    pub stamp: Nanos,
    /// What it says.
    pub error: ErrorInfo,
}

/// A payload that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BadPayload {
    /// Instant of its event.
    pub stamp: Nanos,
    /// What was wrong.
    pub kind: BadPayloadKind,
}

/// What was wrong with a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BadPayloadKind {
    /// Neither `[DONE]` nor a JSON object with the shape of a chunk.
    NotAChunk,
    /// Larger than the configured bound.
    TooLarge,
}

/// Where an output token count comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokensFrom {
    /// The server's `usage`.
    Usage,
    /// The number of token-bearing events: only a lower bound where chunks hold several tokens.
    Chunks,
}

/// Everything known about one response. All stamps are the caller's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TimelineRecord {
    /// First byte of the response, interim responses included.
    pub first_byte: Option<Nanos>,
    /// Last byte of the response.
    pub last_byte: Option<Nanos>,
    /// Last byte of the body, chunk framing excluded: the sign of life that timeouts go by.
    pub last_body_byte: Option<Nanos>,
    /// Interim (1xx) responses before the final one.
    pub interim_responses: u32,
    /// The final head.
    pub head: Option<HeadInfo>,
    /// How the body is read.
    pub body_format: BodyFormat,
    /// First event of any kind.
    pub first_event: Option<Nanos>,
    /// First token-bearing event.
    pub first_token: Option<Nanos>,
    /// First event with visible content.
    pub first_content_token: Option<Nanos>,
    /// Every token-bearing event up to the configured cap.
    pub token_stamps: Vec<Nanos>,
    /// The cap was reached: `token_stamps` is not complete.
    pub token_stamps_overflow: bool,
    /// Last token-bearing event.
    pub last_token: Option<Nanos>,
    /// Last event of any kind.
    pub last_event: Option<Nanos>,
    /// `[DONE]`.
    pub done: Option<Nanos>,
    /// Last finish reason.
    pub finish: Option<Finish>,
    /// Last usage.
    pub usage: Option<Usage>,
    /// First in-band error.
    pub inband_error: Option<InbandError>,
    /// Error in the body of a status other than 200.
    pub http_error: Option<ErrorInfo>,
    /// First unreadable payload.
    pub bad_payload: Option<BadPayload>,
    /// A coding hides the body.
    pub opaque_encoding: bool,
    /// First non-empty `id` of the stream.
    pub response_id: Option<String>,
    /// Events of any kind.
    pub events: u64,
    /// Token-bearing events.
    pub token_events: u64,
    /// Token-bearing events after `[DONE]`.
    pub token_events_after_done: u64,
    /// Comment lines.
    pub comments: u64,
    /// Last comment line.
    pub last_comment: Option<Nanos>,
    /// The stream ended inside an event, which the standard discards.
    pub unterminated_event: bool,
    /// Bytes of the body, chunk framing excluded.
    pub body_bytes: u64,
    /// Bytes of the response, framing and lost bytes included.
    pub bytes: u64,
    /// Bytes that were lost or not captured.
    pub bytes_lost: u64,
    /// Bytes after the response's end that no request asked for.
    pub excess_bytes: u64,
    /// The verdict on its framing.
    pub framing: Framing,
    /// Tolerated departures from the grammar.
    pub tolerated: Tolerated,
    /// The message's own end.
    pub framing_end: Option<Nanos>,
    /// How the connection's receiving direction ended, if it did before the caller let go.
    pub close: Option<Close>,
    /// When it did.
    pub close_stamp: Option<Nanos>,
}

impl Default for TimelineRecord {
    fn default() -> Self {
        Self {
            first_byte: None,
            last_byte: None,
            last_body_byte: None,
            interim_responses: 0,
            head: None,
            body_format: BodyFormat::None,
            first_event: None,
            first_token: None,
            first_content_token: None,
            token_stamps: Vec::new(),
            token_stamps_overflow: false,
            last_token: None,
            last_event: None,
            done: None,
            finish: None,
            usage: None,
            inband_error: None,
            http_error: None,
            bad_payload: None,
            opaque_encoding: false,
            response_id: None,
            events: 0,
            token_events: 0,
            token_events_after_done: 0,
            comments: 0,
            last_comment: None,
            unterminated_event: false,
            body_bytes: 0,
            bytes: 0,
            bytes_lost: 0,
            excess_bytes: 0,
            framing: Framing::Incomplete,
            tolerated: Tolerated::default(),
            framing_end: None,
            close: None,
            close_stamp: None,
        }
    }
}

impl TimelineRecord {
    /// Status code of the final head.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.head.as_ref().map(|head| head.status)
    }

    /// First token minus `from`, in nanoseconds; `None` where no token came, never 0 for it.
    #[must_use]
    pub fn ttft(&self, from: Nanos) -> Option<i64> {
        self.first_token.map(|first| first.since(from))
    }

    /// First visible content minus `from`, in nanoseconds.
    #[must_use]
    pub fn content_ttft(&self, from: Nanos) -> Option<i64> {
        self.first_content_token.map(|first| first.since(from))
    }

    /// Output tokens and where the count comes from. A usage of 0 beside token-bearing events is
    /// no count.
    #[must_use]
    pub fn output_tokens(&self) -> (u64, TokensFrom) {
        match self.usage.and_then(|usage| usage.completion_tokens) {
            Some(tokens) if tokens > 0 || self.token_events == 0 => (tokens, TokensFrom::Usage),
            _ => (self.token_events, TokensFrom::Chunks),
        }
    }

    /// Time per output token: (last token event - first token event) / (output tokens - 1).
    #[must_use]
    pub fn tpot(&self) -> Tpot {
        let (Some(first), Some(last)) = (self.first_token, self.last_token) else {
            return Tpot::NoToken;
        };
        Tpot::new(last.since(first), self.output_tokens().0)
    }

    /// The server says that prefill or processing timed out: status 504, or an error that names it.
    #[must_use]
    pub fn names_server_timeout(&self) -> bool {
        let inband = self.inband_error.as_ref().map(|inband| &inband.error);
        let errors = [self.http_error.as_ref(), inband];
        self.status() == Some(504) || errors.into_iter().flatten().any(|error| error.names_timeout)
    }
}
