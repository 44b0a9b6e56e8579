//! The trace as replayed, written down: what the hashes in the manifest are taken of.

use serde::Serialize;

use super::mooncake::MooncakeRow;
use super::prompts::PromptRow;
use super::{Content, MOONCAKE_BLOCK_TOKENS, Row, Trace};

impl Trace {
    /// The rows after selection and scaling as JSON Lines in the format they came in, byte-stable.
    ///
    /// # Errors
    /// [`serde_json::Error`] when a row cannot be written, which no checked row causes.
    pub fn to_jsonl(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut out = Vec::new();
        for row in &self.rows {
            write_row(&mut out, row)?;
            out.push(b'\n');
        }
        Ok(out)
    }
}

fn write_row(out: &mut Vec<u8>, row: &Row) -> Result<(), serde_json::Error> {
    let max_tokens = row.output_tokens;
    let timestamp_ms = Milliseconds(row.arrival_ns).as_f64();
    match &row.content {
        Content::Blocks { hash_ids, block_tokens, input_tokens } => {
            let wire = MooncakeRow {
                timestamp: timestamp_ms,
                input_length: *input_tokens,
                output_length: row.output_tokens,
                hash_ids: hash_ids.clone(),
                block_tokens: Some(*block_tokens).filter(|&block| block != MOONCAKE_BLOCK_TOKENS),
            };
            write(out, &wire)
        }
        Content::Messages(messages) => {
            let messages = Some(messages.clone());
            write(out, &PromptRow { timestamp_ms, messages, prompt: None, max_tokens })
        }
        Content::Prompt(prompt) => {
            let prompt = Some(prompt.clone());
            write(out, &PromptRow { timestamp_ms, messages: None, prompt, max_tokens })
        }
    }
}

fn write<T: Serialize>(out: &mut Vec<u8>, row: &T) -> Result<(), serde_json::Error> {
    serde_json::to_writer(out, row)
}

struct Milliseconds(u64);

impl Milliseconds {
    #[expect(clippy::cast_precision_loss, reason = "exact below 2^53 ns, 104 days of trace time")]
    fn as_f64(&self) -> f64 {
        self.0 as f64 / 1e6
    }
}
