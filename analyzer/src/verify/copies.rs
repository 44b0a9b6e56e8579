//! Repetitions that are copies of others: a trace id is drawn for one request of one repetition.

use std::collections::BTreeMap;

use protocol::TraceId;

use crate::analyze::place;
use crate::evidence::{Evidence, Repetition};

/// Place of each repetition that shares trace ids with another one, with a sentence that names the other.
/// Both are in it: which one is the copy cannot be told.
#[must_use]
pub(crate) fn copies(evidence: &Evidence) -> BTreeMap<String, String> {
    let mut owners = BTreeMap::<TraceId, usize>::new();
    let mut shared = BTreeMap::<(usize, usize), usize>::new();
    for (nth, rep) in evidence.repetitions.iter().enumerate() {
        for row in &rep.requests {
            let owner = *owners.entry(row.trace_id).or_insert(nth);
            if owner != nth {
                *shared.entry((owner, nth)).or_default() += 1;
            }
        }
    }
    let name = |nth: usize| evidence.repetitions.get(nth).map(place_of).unwrap_or_default();
    let mut found = BTreeMap::new();
    for ((first, second), n) in shared {
        for (here, other) in [(first, second), (second, first)] {
            let detail = format!("{n} trace ids are also in {}", name(other));
            found.entry(name(here)).or_insert(detail);
        }
    }
    found
}

/// The place of a repetition, as findings name it.
#[must_use]
pub(crate) fn place_of(rep: &Repetition) -> String {
    place(&rep.place.arm, Some(rep.place.rate_rps), Some(rep.place.repetition))
}
