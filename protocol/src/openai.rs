//! What one payload of an OpenAI-compatible stream means: chat and completions chunks, errors, `[DONE]`.
//!
//! No text is kept. A payload is reduced to whether it carries tokens, and to counts and names.

mod chunk;
mod loose;

pub use chunk::{Chunk, ErrorInfo, MAX_NAME, MAX_TEXT, Usage, parse_error_body};

/// One payload, as far as timing and outcome need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// `[DONE]`.
    Done,
    /// Nothing but blanks: a sign of life.
    Empty,
    /// A JSON object.
    Chunk(Chunk),
    /// Neither: text that is no JSON, or JSON that is no chunk.
    Bad,
}

impl Payload {
    /// Reads the data of one event, or a whole unstreamed body.
    #[must_use]
    pub fn parse(data: &[u8]) -> Self {
        match data.trim_ascii() {
            b"[DONE]" => Self::Done,
            b"" => Self::Empty,
            json => chunk::parse(json).map_or(Self::Bad, Self::Chunk),
        }
    }
}
