//! Traces: what was asked, how long it was and when it came.
//!
//! Two formats are read, both JSON Lines: Mooncake (lengths and `hash_ids`, no text) and prompts (text).
//! A trace is checked whole before anything is sent: a bad row found during a run would void the run.

mod error;
mod load;
mod materialise;
mod mooncake;
mod prompts;
#[cfg(test)]
mod tests;

pub use error::{Flaw, TraceError};
pub use load::{LoadOptions, load, parse};
pub use mooncake::MOONCAKE_BLOCK_TOKENS;

use serde::{Deserialize, Serialize};

/// How the rows of a trace file are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceFormat {
    /// `timestamp`, `input_length`, `output_length`, `hash_ids`.
    Mooncake,
    /// `timestamp_ms`, `messages` or `prompt`, `max_tokens`.
    Prompt,
}

/// One message of a chat request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// `system`, `user`, `assistant` or what else the engine knows.
    pub role: String,
    /// Its text.
    pub content: String,
}

/// What a row asks, from which the request body is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text is derived from block identities: equal leading ids give equal leading text.
    Blocks {
        /// One identity per block of input.
        hash_ids: Vec<u64>,
        /// Tokens of a whole block; the last block may be shorter.
        block_tokens: u64,
        /// Tokens of the whole input.
        input_tokens: u64,
    },
    /// A chat.
    Messages(Vec<Message>),
    /// A text to complete.
    Prompt(String),
}

/// One request of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Line of the source file, from 1.
    pub line: usize,
    /// Arrival in trace time, nanoseconds.
    pub arrival_ns: u64,
    /// Tokens asked for; at least 1.
    pub output_tokens: u64,
    /// What is asked.
    pub content: Content,
}

impl Row {
    /// Tokens of the input, where the trace knows them.
    #[must_use]
    pub fn input_tokens(&self) -> Option<u64> {
        match &self.content {
            Content::Blocks { input_tokens, .. } => Some(*input_tokens),
            Content::Messages(_) | Content::Prompt(_) => None,
        }
    }
}

/// A checked trace: at least one row, in order of time, ties in file order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    format: TraceFormat,
    rows: Vec<Row>,
}

impl Trace {
    /// The format it was read from, and is materialised in.
    #[must_use]
    pub fn format(&self) -> TraceFormat {
        self.format
    }

    /// Its rows, in order of time.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Largest number of output tokens that a row asks for; the deadline rule needs it.
    #[must_use]
    pub fn largest_output(&self) -> u64 {
        self.rows.iter().map(|row| row.output_tokens).max().unwrap_or(1)
    }
}
