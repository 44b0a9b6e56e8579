//! Requests whose prefix was sent before: what a cache-aware gateway could have hit.

use std::collections::BTreeSet;

use crate::schedule::Schedule;
use crate::trace::{Content, MOONCAKE_BLOCK_TOKENS, Row, Trace};

/// Separates messages: no text of a prompt file can hold it.
const SEPARATOR: u8 = 0xff;

/// Scheduled requests whose `blocks` leading blocks an earlier request of the schedule had too.
///
/// A trace of text has no blocks of its own: one is then as many bytes as a Mooncake block has tokens, times
/// `bytes_per_token`. A prompt shorter than that many blocks repeats nothing.
pub(super) fn repeated(
    trace: &Trace,
    schedule: &Schedule,
    blocks: usize,
    bytes_per_token: u64,
) -> Option<u64> {
    let bytes = MOONCAKE_BLOCK_TOKENS.saturating_mul(bytes_per_token);
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_mul(blocks);
    let mut seen = BTreeSet::new();
    let mut count = 0;
    for planned in schedule.requests() {
        let row = trace.rows().get(planned.row)?;
        if let Some(prefix) = prefix(row, blocks, bytes)
            && !seen.insert(prefix)
        {
            count += 1;
        }
    }
    Some(count)
}

fn prefix(row: &Row, blocks: usize, bytes: usize) -> Option<Vec<u8>> {
    match &row.content {
        Content::Blocks { hash_ids, .. } => {
            Some(hash_ids.get(..blocks)?.iter().flat_map(|id| id.to_be_bytes()).collect())
        }
        Content::Prompt(prompt) => Some(prompt.as_bytes().get(..bytes)?.to_vec()),
        Content::Messages(messages) => {
            let text = messages.iter().flat_map(|message| {
                let (role, content) = (message.role.bytes(), message.content.bytes());
                role.chain([SEPARATOR]).chain(content).chain([SEPARATOR])
            });
            let prefix: Vec<u8> = text.take(bytes).collect();
            (prefix.len() == bytes).then_some(prefix)
        }
    }
}
