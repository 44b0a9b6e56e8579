//! Mooncake rows: lengths and block identities without text.

use serde::{Deserialize, Serialize};

use super::error::Flaw;
use super::load::{MAX_TOKENS, arrival_ns};
use super::{Content, Row};

/// Tokens of input per `hash_id` in the Mooncake traces.
pub const MOONCAKE_BLOCK_TOKENS: u64 = 512;

/// The wire form. `block_tokens` is ours: a materialised trace whose lengths were divided carries it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MooncakeRow {
    pub(super) timestamp: f64,
    pub(super) input_length: u64,
    pub(super) output_length: u64,
    pub(super) hash_ids: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) block_tokens: Option<u64>,
}

/// Reads and checks one row, then divides its lengths.
pub(super) fn parse(text: &str, line: usize, divisor: u64) -> Result<Row, Flaw> {
    let wire: MooncakeRow = serde_json::from_str(text)?;
    let arrival_ns = arrival_ns("timestamp", wire.timestamp)?;
    let block_tokens = wire.block_tokens.unwrap_or(MOONCAKE_BLOCK_TOKENS);
    check_lengths(&wire, block_tokens)?;
    let input_tokens = divide(wire.input_length, divisor);
    let block_tokens = divide(block_tokens, divisor);
    let mut hash_ids = wire.hash_ids;
    // Rounding down can leave the last block without a token.
    hash_ids.truncate(usize::try_from(input_tokens.div_ceil(block_tokens)).unwrap_or(usize::MAX));
    let output_tokens = divide(wire.output_length, divisor);
    let content = Content::Blocks { hash_ids, block_tokens, input_tokens };
    Ok(Row { line, arrival_ns, output_tokens, content })
}

fn check_lengths(wire: &MooncakeRow, block_tokens: u64) -> Result<(), Flaw> {
    for (key, value) in [("input_length", wire.input_length), ("block_tokens", block_tokens)] {
        if value == 0 {
            return Err(Flaw::NoTokens { key });
        }
    }
    for (key, value) in [("input_length", wire.input_length), ("output_length", wire.output_length)]
    {
        if value > MAX_TOKENS {
            return Err(Flaw::TooLong { key, value, max: MAX_TOKENS });
        }
    }
    let expected = wire.input_length.div_ceil(block_tokens);
    if u64::try_from(wire.hash_ids.len()) != Ok(expected) {
        let (found, input_length) = (wire.hash_ids.len(), wire.input_length);
        return Err(Flaw::HashIds { found, expected, input_length, block_tokens });
    }
    Ok(())
}

/// Lengths below 1 become 1: every request has a prompt and asks for a token.
fn divide(length: u64, divisor: u64) -> u64 {
    (length / divisor).max(1)
}
