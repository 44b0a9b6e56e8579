//! Requests whose prefix was sent before: what a cache-aware gateway could have hit.

use std::collections::BTreeSet;

use crate::schedule::Schedule;
use crate::trace::{Content, Trace};

/// Scheduled requests whose `blocks` leading blocks an earlier request of the schedule had too; nothing
/// for traces of text, which have no blocks.
pub(super) fn repeated(trace: &Trace, schedule: &Schedule, blocks: usize) -> Option<u64> {
    let mut seen = BTreeSet::new();
    let mut count = 0;
    for planned in schedule.requests() {
        let Content::Blocks { hash_ids, .. } = &trace.rows().get(planned.row)?.content else {
            return None;
        };
        if let Some(prefix) = hash_ids.get(..blocks)
            && !seen.insert(prefix.to_vec())
        {
            count += 1;
        }
    }
    Some(count)
}
