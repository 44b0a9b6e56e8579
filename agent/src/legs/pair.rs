//! Client leg and backend legs of one request, by trace id.

use std::collections::BTreeMap;

use protocol::TraceId;
use protocol::receipt::{Contact, Phase, Receipt, phases};
use serde::Serialize;

use super::row::LegRow;
use crate::endpoint::Leg;

/// A client leg with its backend legs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// From the client to the VIP.
    pub client: LegRow,
    /// From the gateway to backends, in the order in which they began, each with its phase.
    pub backends: Vec<(LegRow, Option<Phase>)>,
}

/// Why a leg has no counterpart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnmatchedReason {
    /// The request carries no correlation header that can be read.
    NoTraceId,
    /// No backend leg carries the client leg's id.
    NoBackendLeg,
    /// No client leg carries the backend leg's id.
    NoClientLeg,
    /// Several client legs carry the same id: which of them a backend leg serves is not known.
    RepeatedTraceId,
    /// Too many legs were waiting for their counterpart.
    Evicted,
}

impl UnmatchedReason {
    /// Every reason.
    pub const ALL: [Self; 5] = [
        Self::NoTraceId,
        Self::NoBackendLeg,
        Self::NoClientLeg,
        Self::RepeatedTraceId,
        Self::Evicted,
    ];

    /// Its name in rows and labels.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoTraceId => "no_trace_id",
            Self::NoBackendLeg => "no_backend_leg",
            Self::NoClientLeg => "no_client_leg",
            Self::RepeatedTraceId => "repeated_trace_id",
            Self::Evicted => "evicted",
        }
    }
}

/// A leg without counterpart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// The leg.
    pub row: LegRow,
    /// Why.
    pub reason: UnmatchedReason,
}

/// Every leg, in exactly one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairing {
    /// Sorted by the instant at which the client's request began.
    pub pairs: Vec<Pair>,
    /// Legs without counterpart, sorted likewise.
    pub unmatched: Vec<Unmatched>,
}

/// Pairs `legs`.
#[must_use]
pub fn pair(legs: impl IntoIterator<Item = LegRow>) -> Pairing {
    let mut pairing = Pairing::default();
    let mut groups: BTreeMap<TraceId, Vec<LegRow>> = BTreeMap::new();
    for row in legs {
        match row.trace_id {
            Some(id) => groups.entry(id).or_default().push(row),
            None => {
                pairing.unmatched.push(Unmatched { row, reason: UnmatchedReason::NoTraceId });
            }
        }
    }
    for legs in groups.into_values() {
        place(legs, &mut pairing);
    }
    let order = |row: &LegRow| (row.request_first_ns, row.connection, row.request_index);
    pairing.pairs.sort_by_key(|pair| order(&pair.client));
    pairing.unmatched.sort_by_key(|unmatched| order(&unmatched.row));
    pairing
}

/// Places the legs of one trace id.
fn place(legs: Vec<LegRow>, pairing: &mut Pairing) {
    let (mut clients, mut backends): (Vec<_>, Vec<_>) =
        legs.into_iter().partition(|row| row.leg == Leg::Client);
    let reason = match (clients.len(), backends.len()) {
        (1, 1..) => {
            backends.sort_by_key(|row| (row.request_first_ns, row.connection, row.request_index));
            let contacts: Vec<Contact> = backends.iter().map(LegRow::contact).collect();
            let backends = backends.into_iter().zip(phases(&contacts)).collect();
            pairing.pairs.extend(clients.pop().map(|client| Pair { client, backends }));
            return;
        }
        (0, _) => UnmatchedReason::NoClientLeg,
        (1, 0) => UnmatchedReason::NoBackendLeg,
        _ => UnmatchedReason::RepeatedTraceId,
    };
    let rows = clients.into_iter().chain(backends);
    pairing.unmatched.extend(rows.map(|row| Unmatched { row, reason }));
}

impl Pair {
    /// The backend leg that answered last in `phase`.
    #[must_use]
    pub fn leg(&self, phase: Phase) -> Option<&LegRow> {
        let of_phase = |(row, it): &&(LegRow, Option<Phase>)| *it == Some(phase) && row.answered();
        self.backends.iter().rev().find(of_phase).map(|(row, _)| row)
    }

    /// The backend leg whose answer the client got.
    #[must_use]
    pub fn serving(&self) -> Option<&LegRow> {
        self.leg(Phase::Decode).or_else(|| self.backends.last().map(|(row, _)| row))
    }

    /// Attempts that did not answer 200 and were followed by another.
    #[must_use]
    pub fn retries(&self) -> usize {
        let before = self.backends.len().saturating_sub(1);
        self.backends[..before].iter().filter(|(row, _)| !row.answered()).count()
    }

    /// What was said of its delivery: to the client, or else to the backend that served.
    #[must_use]
    pub fn receipt(&self) -> Option<Receipt> {
        self.client.receipt().or_else(|| self.serving()?.receipt())
    }

    pub(super) fn contacts(&self) -> Vec<Contact> {
        self.backends.iter().map(|(row, _)| row.contact()).collect()
    }
}
