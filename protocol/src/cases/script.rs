//! A case as a script of writes, and the pieces scripts are made of.

use super::expect::{Expected, NS_PER_MS};
use crate::Nanos;
use crate::http1::{Close, Method};
use crate::timeline::{ResponseTimeline, TimelineRecord};

/// One write of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Milliseconds after the last byte of the request.
    pub at_ms: u64,
    /// What is written, in one piece.
    pub bytes: Vec<u8>,
}

/// What the server does with the connection after the last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Leaves it open, ready for another request.
    KeepAlive,
    /// Closes it in order, so many milliseconds after the request.
    Close(u64),
    /// Resets it, so many milliseconds after the request.
    Reset(u64),
}

/// One scripted response and its right answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Stable name, usable as a model name or a path segment.
    pub name: &'static str,
    /// Ids of the reports it reproduces.
    pub ids: &'static [&'static str],
    /// What the server does, for people.
    pub about: &'static str,
    /// Its writes, in order.
    pub steps: Vec<Step>,
    /// What it does at the end.
    pub end: End,
    /// The right answer.
    pub expect: Expected,
}

impl Case {
    /// Runs the script through a timeline in model time; the request's last byte leaves at 0.
    #[must_use]
    pub fn replay(&self) -> TimelineRecord {
        let mut timeline = ResponseTimeline::new(Method::Post);
        for step in &self.steps {
            let report = timeline.feed(&step.bytes, at(step.at_ms));
            let rest = step.bytes.len() - report.consumed;
            timeline.excess(u64::try_from(rest).unwrap_or(u64::MAX));
        }
        match self.end {
            End::KeepAlive => {}
            End::Close(at_ms) => timeline.close(Close::Eof, at(at_ms)),
            End::Reset(at_ms) => timeline.close(Close::Reset, at(at_ms)),
        }
        timeline.into_record()
    }

    /// All bytes of the script, in order.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.steps.iter().flat_map(|step| step.bytes.iter().copied()).collect()
    }
}

fn at(ms: u64) -> Nanos {
    Nanos::new(ms * NS_PER_MS)
}

/// Head of a chunked event stream.
pub(super) const CHUNKED_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
     cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
/// Head of an event stream that ends with the connection.
pub(super) const CLOSE_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
/// The end of a chunked body.
pub(super) const LAST_CHUNK: &str = "0\r\n\r\n";
/// The end of a stream.
pub(super) const DONE: &str = "data: [DONE]\n\n";

/// A response written step by step.
pub(super) struct Script {
    steps: Vec<Step>,
}

impl Script {
    /// Begins with a chunked event-stream head at 10 ms.
    pub(super) fn chunked() -> Self {
        Self::head(CHUNKED_HEAD)
    }

    /// Begins with `head` at 10 ms.
    pub(super) fn head(head: &str) -> Self {
        Self::silent().raw(10, head)
    }

    /// Begins with nothing.
    pub(super) fn silent() -> Self {
        Self { steps: Vec::new() }
    }

    /// Writes bytes as they are.
    pub(super) fn raw(mut self, at_ms: u64, bytes: impl AsRef<[u8]>) -> Self {
        self.steps.push(Step { at_ms, bytes: bytes.as_ref().to_vec() });
        self
    }

    /// Writes one chunk.
    pub(super) fn chunk(self, at_ms: u64, data: impl AsRef<[u8]>) -> Self {
        let bytes = chunk(data.as_ref());
        self.raw(at_ms, bytes)
    }

    /// Writes content tokens from 100 ms on, one chunk each, 20 ms apart.
    pub(super) fn tokens(self, count: u64) -> Self {
        (0..count).fold(self, |script, n| script.chunk(100 + 20 * n, content("tok ")))
    }

    /// Writes finish reason, usage, `[DONE]` and the last chunk at 200 ms.
    pub(super) fn finish(self, tokens: u64) -> Self {
        let tail =
            [finish("stop"), usage(tokens), DONE.to_owned()].map(|event| chunk(event.as_bytes()));
        self.raw(200, [tail.concat(), LAST_CHUNK.into()].concat())
    }

    /// The case, with the connection left open.
    pub(super) fn case(
        self,
        name: &'static str,
        ids: &'static [&'static str],
        about: &'static str,
        expect: Expected,
    ) -> Case {
        Case { name, ids, about, steps: self.steps, end: End::KeepAlive, expect }
    }
}

impl Case {
    pub(super) fn ending(self, end: End) -> Self {
        Self { end, ..self }
    }
}

/// Frames `data` as one chunk.
pub(super) fn chunk(data: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()
}

/// An event of one data line.
pub(super) fn event(json: &str) -> String {
    format!("data: {json}\n\n")
}

/// A chat chunk with this delta.
pub(super) fn delta(delta: &str) -> String {
    event(&format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#
    ))
}

/// A chat chunk with visible content.
pub(super) fn content(text: &str) -> String {
    delta(&format!(r#"{{"content":"{text}"}}"#))
}

/// The chunk that carries the finish reason.
pub(super) fn finish(reason: &str) -> String {
    event(&format!(
        r#"{{"id":"chatcmpl-1","choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#
    ))
}

/// The trailing usage chunk.
pub(super) fn usage(tokens: u64) -> String {
    event(&format!(
        r#"{{"id":"chatcmpl-1","choices":[],"usage":{{"prompt_tokens":16,"completion_tokens":{tokens},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":8}}}}}}"#,
        16 + tokens
    ))
}
