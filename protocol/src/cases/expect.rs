//! The right answer for a case.

use crate::Nanos;
use crate::http1::{Framing, Rule};
use crate::outcome::StreamOutcome;
use crate::timeline::{TimelineRecord, TokensFrom, Tpot};

/// Nanoseconds in a millisecond.
pub(super) const NS_PER_MS: u64 = 1_000_000;

/// The verdict on the framing, without the place of a broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedFraming {
    /// Seen to its own end.
    Valid,
    /// Cut short.
    Incomplete,
    /// This rule is broken.
    Invalid(Rule),
    /// Not to be judged.
    Unknown,
}

impl From<Framing> for ExpectedFraming {
    fn from(framing: Framing) -> Self {
        match framing {
            Framing::Valid => Self::Valid,
            Framing::Incomplete => Self::Incomplete,
            Framing::Invalid { rule, .. } => Self::Invalid(rule),
            Framing::Unknown { .. } => Self::Unknown,
        }
    }
}

/// What a correct tool reports for a case. Instants assume that every step leaves on time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Class.
    pub outcome: StreamOutcome,
    /// Verdict on the framing.
    pub framing: ExpectedFraming,
    /// First token, in milliseconds after the request.
    pub ttft_ms: Option<u64>,
    /// First visible content, in milliseconds after the request.
    pub content_ttft_ms: Option<u64>,
    /// Last token, in milliseconds after the request.
    pub last_token_ms: Option<u64>,
    /// Output tokens.
    pub output_tokens: u64,
    /// Where the count comes from.
    pub tokens_from: TokensFrom,
    /// Time per output token.
    pub tpot: Tpot,
    /// Token-bearing events.
    pub token_events: u64,
    /// Comment lines.
    pub comments: u64,
    /// Tolerated departures that are counted.
    pub tolerated: Vec<(Rule, u64)>,
    /// `Retry-After`.
    pub retry_after: Option<&'static str>,
    /// The server names a prefill or processing timeout.
    pub server_timeout: bool,
}

impl Expected {
    /// What `record` says, for a request whose last byte left at `sent`.
    ///
    /// Compare the instants with a tolerance when the bytes went over a socket.
    #[must_use]
    pub fn observed(record: &TimelineRecord, sent: Nanos) -> Self {
        let ms = |stamp: Option<Nanos>| stamp.map(|stamp| (stamp.get() - sent.get()) / NS_PER_MS);
        let (output_tokens, tokens_from) = record.output_tokens();
        Self {
            outcome: StreamOutcome::of(record),
            framing: record.framing.into(),
            ttft_ms: ms(record.first_token),
            content_ttft_ms: ms(record.first_content_token),
            last_token_ms: ms(record.last_token),
            output_tokens,
            tokens_from,
            tpot: record.tpot(),
            token_events: record.token_events,
            comments: record.comments,
            tolerated: record.tolerated.iter().collect(),
            retry_after: None,
            server_timeout: record.names_server_timeout(),
        }
    }

    /// The base case: five tokens from 100 ms on, 20 ms apart, counted by usage.
    pub(super) fn base() -> Self {
        Self::tokens(100, 180, 5, 5)
    }

    /// A good stream whose usage counts `tokens`, in `events` events.
    pub(super) fn tokens(first_ms: u64, last_ms: u64, tokens: u64, events: u64) -> Self {
        Self {
            outcome: StreamOutcome::Ok,
            framing: ExpectedFraming::Valid,
            ttft_ms: Some(first_ms),
            content_ttft_ms: Some(first_ms),
            last_token_ms: Some(last_ms),
            output_tokens: tokens,
            tokens_from: TokensFrom::Usage,
            tpot: tpot(first_ms, last_ms, tokens),
            token_events: events,
            comments: 0,
            tolerated: Vec::new(),
            retry_after: None,
            server_timeout: false,
        }
    }

    /// A response that ends as `outcome` after `events` tokens without usage, 20 ms apart.
    pub(super) fn cut(outcome: StreamOutcome, framing: ExpectedFraming, events: u64) -> Self {
        let last = if events == 0 { None } else { Some(100 + 20 * (events - 1)) };
        let first = last.map(|_| 100);
        Self {
            outcome,
            framing,
            ttft_ms: first,
            content_ttft_ms: first,
            last_token_ms: last,
            tokens_from: TokensFrom::Chunks,
            tpot: last.map_or(Tpot::NoToken, |last| tpot(100, last, events)),
            ..Self::tokens(100, 180, events, events)
        }
    }

    pub(super) fn content_ttft(self, content_ttft_ms: Option<u64>) -> Self {
        Self { content_ttft_ms, ..self }
    }

    pub(super) fn tolerating(self, rule: Rule, count: u64) -> Self {
        Self { tolerated: vec![(rule, count)], ..self }
    }
}

fn tpot(first_ms: u64, last_ms: u64, tokens: u64) -> Tpot {
    let span_ns = last_ms.saturating_sub(first_ms) * NS_PER_MS;
    Tpot::new(i64::try_from(span_ns).unwrap_or(i64::MAX), tokens)
}
