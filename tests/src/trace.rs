//! Small traces for replays.

use std::fmt::Write as _;

/// Tokens of one block of a Mooncake trace.
const BLOCK: usize = 512;
/// By what replays divide all lengths, so that a block has the 64 tokens of the simulated engines'.
const DIVISOR: usize = 8;

/// A trace in Mooncake's form, with prefixes that rows share.
#[derive(Clone, Copy, Debug)]
pub struct Trace {
    /// Rows.
    pub rows: usize,
    /// Groups of rows; the rows of a group share all blocks but the last.
    pub groups: usize,
    /// Blocks of every prompt.
    pub blocks: usize,
    /// Tokens of every answer once lengths are divided.
    pub output_tokens: usize,
}

impl Trace {
    /// The text of the trace: rows 20 ms apart, groups in turn.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for row in 0..self.rows {
            let group = row % self.groups;
            let shared = (1..self.blocks).map(|block| group * self.blocks + block);
            let own = self.groups * self.blocks + row;
            let ids: Vec<_> = shared.chain([own]).map(|id| id.to_string()).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                r#"{{"timestamp":{},"input_length":{},"output_length":{},"hash_ids":[{}]}}"#,
                row * 20,
                self.blocks * BLOCK,
                self.output_tokens * DIVISOR,
                ids.join(",")
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Trace;

    #[test]
    fn rows_of_a_group_share_all_but_their_last_block() {
        let trace = Trace { rows: 3, groups: 2, blocks: 3, output_tokens: 5 };
        let ids: Vec<_> = trace
            .text()
            .lines()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["hash_ids"].clone()
            })
            .collect();
        assert_eq!(ids, [[1, 2, 6], [4, 5, 7], [1, 2, 8]].map(|ids| serde_json::json!(ids)));
    }
}
