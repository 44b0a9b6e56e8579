//! Observations by trace id and leg.

use std::collections::BTreeMap;

use protocol::TraceId;

use super::Observed;
use crate::rundir::{KernelRow, Leg};

/// An observation with the agent that made it, by position.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) agent: usize,
    pub(super) row: &'a KernelRow,
}

pub(super) struct Legs<'a> {
    by_id: BTreeMap<(TraceId, Leg), Seen<'a>>,
}

impl<'a> Legs<'a> {
    /// A request that was sent again has a row for each time; the one that was answered counts.
    /// In prefill/decode disaggregation a request has two backend legs; the one that carries tokens to
    /// the client counts, which is the last that began to answer.
    pub(super) fn of(observed: &'a [Observed]) -> Self {
        let mut by_id: BTreeMap<(TraceId, Leg), Seen<'a>> = BTreeMap::new();
        for (agent, observed) in observed.iter().enumerate() {
            for row in &observed.rows {
                let Some(id) = row.trace_id else { continue };
                let slot = by_id.entry((id, row.leg)).or_insert(Seen { agent, row });
                let progress = |row: &KernelRow| (row.first_token_ns, row.request_end_ns);
                if slot.agent == agent && progress(row) > progress(slot.row) {
                    *slot = Seen { agent, row };
                }
            }
        }
        Self { by_id }
    }

    pub(super) fn seen(&self, id: TraceId, leg: Leg) -> Option<Seen<'a>> {
        self.by_id.get(&(id, leg)).copied()
    }

    pub(super) fn get(&self, id: TraceId, leg: Leg) -> Option<&'a KernelRow> {
        self.seen(id, leg).map(|seen| seen.row)
    }

    pub(super) fn has(&self, id: TraceId, leg: Leg) -> bool {
        self.by_id.contains_key(&(id, leg))
    }
}
