//! Pairs as they end, for counters of the running agent: bounded, and judged once.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;

use protocol::receipt::Verdict;
use protocol::{Nanos, TraceId};

use super::pair::{UnmatchedReason, pair};
use super::report::{compare, leg_name};
use super::row::LegRow;
use crate::endpoint::{Endpoint, Leg};

/// Trace ids that may wait for their counterpart.
const MOST_WAITING: usize = 16_384;
/// Legs kept of one trace id.
const MOST_LEGS: usize = 16;
/// How long backend legs may still come after the client leg has ended, in nanoseconds.
const SETTLE_NS: u64 = 1_000_000_000;
/// How long a backend leg waits for its client leg, in nanoseconds: a prefill ends long before its stream.
const PATIENCE_NS: u64 = 900_000_000_000;

/// What was counted since the agent started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegCounts {
    /// Client legs with at least one backend leg.
    pub paired: u64,
    /// Of these, by what their receipt is worth.
    pub receipts: BTreeMap<&'static str, u64>,
    /// Legs without counterpart, by leg and reason.
    pub unmatched: BTreeMap<(&'static str, &'static str), u64>,
}

#[derive(Debug)]
struct Waiting {
    legs: Vec<LegRow>,
    due: Nanos,
}

/// Legs that wait for their counterpart, and what became of the others.
#[derive(Debug, Default)]
pub struct Tally {
    waiting: HashMap<TraceId, Waiting>,
    /// In the order of their instants, of which an entry may have been moved on since.
    soon: VecDeque<(Nanos, TraceId)>,
    late: VecDeque<(Nanos, TraceId)>,
    backends: Vec<SocketAddr>,
    /// Without a VIP there are no client legs, and nothing to pair.
    pairs_here: bool,
    counts: LegCounts,
}

impl Tally {
    /// Nothing has ended at `endpoints`.
    #[must_use]
    pub fn new(endpoints: &[Endpoint]) -> Self {
        let mut tally = Self::default();
        let receipts = Verdict::ALL.into_iter().map(|verdict| (verdict.code(), 0));
        tally.counts.receipts = receipts.collect();
        for leg in [Leg::Client, Leg::Backend] {
            let reasons = UnmatchedReason::ALL.into_iter().filter(|reason| possible(leg, *reason));
            let zeroes = reasons.map(|reason| ((leg_name(leg), reason.code()), 0));
            tally.counts.unmatched.extend(zeroes);
        }
        tally.set_endpoints(endpoints);
        tally
    }

    /// Other endpoints are watched from now on.
    pub fn set_endpoints(&mut self, endpoints: &[Endpoint]) {
        let of = |leg| endpoints.iter().filter(move |endpoint| endpoint.role.leg() == leg);
        self.backends = of(Leg::Backend).map(|endpoint| endpoint.address).collect();
        self.pairs_here = of(Leg::Client).next().is_some();
    }

    /// Takes a leg that ended; `now` is the current instant.
    pub fn add(&mut self, row: LegRow, now: Nanos) {
        if !self.pairs_here {
            return;
        }
        let Some(id) = row.trace_id else {
            self.unmatched(&[row], UnmatchedReason::NoTraceId);
            return;
        };
        let client = row.leg == Leg::Client;
        let (wait, queue) = match client {
            true => (SETTLE_NS, &mut self.soon),
            false => (PATIENCE_NS, &mut self.late),
        };
        let due = Nanos::new(now.get().saturating_add(wait));
        let known = self.waiting.contains_key(&id);
        let waiting = self.waiting.entry(id).or_insert(Waiting { legs: Vec::new(), due });
        if waiting.legs.len() == MOST_LEGS {
            self.unmatched(&[row], UnmatchedReason::Evicted);
            return;
        }
        waiting.legs.push(row);
        if client || !known {
            waiting.due = waiting.due.min(due);
            queue.push_back((due, id));
        }
        if self.waiting.len() > MOST_WAITING {
            self.evict();
        }
        self.forget_judged();
    }

    /// Entries of ids that were judged long before they were due.
    fn forget_judged(&mut self) {
        if self.late.len() > 2 * MOST_WAITING {
            let waiting = &self.waiting;
            self.late.retain(|(due, id)| waiting.get(id).is_some_and(|it| it.due <= *due));
        }
    }

    /// The one that has waited longest for a client leg goes; else the one nearest its end.
    fn evict(&mut self) {
        while let Some((_, id)) = self.late.pop_front().or_else(|| self.soon.pop_front()) {
            if let Some(gone) = self.waiting.remove(&id) {
                self.unmatched(&gone.legs, UnmatchedReason::Evicted);
                return;
            }
        }
    }

    /// It is `now`: counts what has waited long enough.
    pub fn settle(&mut self, now: Nanos) {
        while let Some(id) = self.next_due(now) {
            if let Some(waiting) = self.waiting.remove(&id) {
                self.judge(waiting.legs);
            }
        }
    }

    fn next_due(&mut self, now: Nanos) -> Option<TraceId> {
        for queue in [&mut self.soon, &mut self.late] {
            while let Some((due, id)) = queue.front().copied().filter(|(due, _)| *due <= now) {
                queue.pop_front();
                // An id may have been judged, or begun anew since.
                if self.waiting.get(&id).is_some_and(|waiting| waiting.due <= due) {
                    return Some(id);
                }
            }
        }
        None
    }

    fn judge(&mut self, legs: Vec<LegRow>) {
        let pairing = pair(legs);
        for unmatched in pairing.unmatched {
            self.unmatched(&[unmatched.row], unmatched.reason);
        }
        for pair in &pairing.pairs {
            // What the running agent missed is told for windows only, so absence proves nothing here.
            let comparison = compare(pair, &self.backends, false);
            self.counts.paired += 1;
            *self.counts.receipts.entry(comparison.verdict.code()).or_default() += 1;
        }
    }

    fn unmatched(&mut self, legs: &[LegRow], reason: UnmatchedReason) {
        for row in legs {
            *self.counts.unmatched.entry((leg_name(row.leg), reason.code())).or_default() += 1;
        }
    }

    /// What was counted.
    #[must_use]
    pub fn counts(&self) -> &LegCounts {
        &self.counts
    }

    /// Trace ids that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

fn possible(leg: Leg, reason: UnmatchedReason) -> bool {
    match reason {
        UnmatchedReason::NoBackendLeg => leg == Leg::Client,
        UnmatchedReason::NoClientLeg => leg == Leg::Backend,
        _ => true,
    }
}
