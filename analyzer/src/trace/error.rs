//! What can be wrong with a trace. Every message names the mend.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A trace that cannot be replayed.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The file could not be read.
    #[error("{path}: cannot read the trace ({cause}): check the path and its permissions", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A row is wrong.
    #[error("{path}:{line}: {flaw}", path = path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        flaw: Flaw,
    },
    /// The file holds no row, or the selection left none.
    #[error("{path}: no rows ({why}): give a trace with at least one request", path = path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// Whether the file or the selection is empty.
        why: &'static str,
    },
    /// The length divisor does not fit.
    #[error(
        "length_divisor is {0}: use a divisor of 512 (1, 2, 4, ... 512), so that blocks stay whole"
    )]
    Divisor(u64),
    /// Text cannot be shortened by a divisor.
    #[error("length_divisor does not apply to prompt traces: their text is sent as it is; use 1")]
    DivisorOnText,
}

/// What is wrong with one row.
#[derive(Debug, Error)]
pub enum Flaw {
    /// No JSON, an unknown key, a missing key or a value of the wrong type.
    #[error(
        "{0}: write one JSON object a line with the keys of the format (NaN and Infinity are no JSON)"
    )]
    Json(#[from] serde_json::Error),
    /// Not valid UTF-8.
    #[error("not UTF-8: save the trace as UTF-8")]
    Encoding,
    /// Neither format's keys are there.
    #[error(
        "neither a Mooncake row (timestamp, input_length, output_length, hash_ids) nor a prompt row \
         (timestamp_ms, messages or prompt, max_tokens): convert the trace to one of them"
    )]
    UnknownFormat,
    /// Negative, not finite, or beyond a century.
    #[error(
        "{key} is {value}: give milliseconds from the start of the trace, finite and at or above 0"
    )]
    Timestamp {
        /// The key.
        key: &'static str,
        /// Its value.
        value: f64,
    },
    /// A length below its minimum.
    #[error("{key} is 0: give at least 1 token")]
    NoTokens {
        /// The key.
        key: &'static str,
    },
    /// A length nobody can mean.
    #[error("{key} is {value}: give at most {max} tokens")]
    TooLong {
        /// The key.
        key: &'static str,
        /// Its value.
        value: u64,
        /// The bound.
        max: u64,
    },
    /// Block identities do not fit the input length.
    #[error(
        "{found} hash_ids for input_length {input_length}: give {expected}, one per {block_tokens} tokens"
    )]
    HashIds {
        /// Identities in the row.
        found: usize,
        /// Identities that the length asks for.
        expected: u64,
        /// Tokens of the input.
        input_length: u64,
        /// Tokens of a block.
        block_tokens: u64,
    },
    /// Both or neither of `messages` and `prompt`.
    #[error("{0} messages and prompt: give exactly one of them")]
    OneContent(&'static str),
    /// Nothing to send, and nothing that a salt could replace.
    #[error("{0} is empty: give the text to send")]
    EmptyText(&'static str),
}
