//! What gateways say of a disaggregated request, against the backends that the kernel saw.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use protocol::receipt::{Comparison, Contact, Evidence, Phase, Reason, Receipt, Verdict, phases};
use protocol::{Nanos, TraceId};
use serde::{Deserialize, Serialize};

use super::Observed;
use crate::records::RequestRecord;
use crate::rundir::{KernelRow, Leg};

/// Receipts of the completed requests, by what they are worth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipts {
    /// The kernel saw both named backends answer the request.
    pub agree: u64,
    /// It saw another one.
    pub disagree: u64,
    /// The response bears none.
    pub absent: u64,
    /// The kernel's record does not show enough.
    pub not_observable: u64,
    /// Requests that the kernel saw at a prefill and at a decode backend.
    pub disaggregated: u64,
    /// The first that disagree.
    pub disagreements: Vec<WrongReceipt>,
}

/// A receipt that the kernel contradicts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongReceipt {
    /// Row of the schedule.
    pub index: u64,
    /// What is wrong.
    pub reasons: Vec<Reason>,
    /// What the receipt names.
    pub named: Receipt,
    /// The backends that answered the request, in order.
    pub seen: Vec<SocketAddr>,
}

/// Disagreements listed in full; all are counted.
const MOST_LISTED: usize = 20;

/// A request's legs.
#[derive(Default)]
struct Seen<'a> {
    client: Option<(usize, &'a KernelRow)>,
    backends: Vec<(usize, &'a KernelRow, Contact)>,
}

impl Receipts {
    pub(super) fn of(completed: &[&RequestRecord], observed: &[Observed]) -> Self {
        let (seen, watched) = index(observed);
        let none = Seen::default();
        let rows: Vec<_> =
            completed.iter().map(|row| (*row, seen.get(&row.trace_id).unwrap_or(&none))).collect();
        let disaggregated = rows.iter().filter(|(_, seen)| seen.is_disaggregated()).count() as u64;
        // Where a leg is missing, nothing was sent only if nothing was lost and the header reaches both.
        let complete = observed.iter().all(|agent| agent.account.complete);
        let whole = complete && disaggregated > 0;
        let mut receipts = Self { disaggregated, ..Self::default() };
        for (row, seen) in rows {
            receipts.add(row, seen, &watched, whole);
        }
        receipts
    }

    fn add(&mut self, row: &RequestRecord, seen: &Seen<'_>, watched: &[SocketAddr], whole: bool) {
        let receipt = seen.receipt(row);
        let contacts = seen.contacts();
        let evidence = Evidence { contacts: &contacts, watched, whole };
        let comparison = Comparison::of(receipt.as_ref(), evidence);
        match comparison.verdict {
            Verdict::Agree => self.agree += 1,
            Verdict::Absent => self.absent += 1,
            Verdict::NotObservable => self.not_observable += 1,
            Verdict::Disagree => self.disagree += 1,
        }
        if let (Verdict::Disagree, Some(named)) = (comparison.verdict, receipt)
            && self.disagreements.len() < MOST_LISTED
        {
            let answered = contacts.iter().filter(|contact| contact.answered);
            let seen = answered.map(|contact| contact.backend).collect();
            let (index, reasons) = (row.index, comparison.reasons);
            self.disagreements.push(WrongReceipt { index, reasons, named, seen });
        }
    }
}

impl Seen<'_> {
    /// Legs of one clock where the client leg's agent saw any, because their order can matter.
    fn contacts(&self) -> Vec<Contact> {
        let gateway = self.client.map(|(agent, _)| agent);
        let near: Vec<Contact> = self
            .backends
            .iter()
            .filter(|(agent, ..)| Some(*agent) == gateway)
            .map(|(.., contact)| *contact)
            .collect();
        if near.is_empty() {
            return self.backends.iter().map(|(.., contact)| *contact).collect();
        }
        near
    }

    fn is_disaggregated(&self) -> bool {
        let contacts = self.contacts();
        let phases: Vec<Option<Phase>> = phases(&contacts)
            .into_iter()
            .zip(&contacts)
            .filter(|(_, contact)| contact.answered)
            .map(|(phase, _)| phase)
            .collect();
        [Phase::Prefill, Phase::Decode].iter().all(|phase| phases.contains(&Some(*phase)))
    }

    /// What the client itself was told, else what the kernel saw of it.
    fn receipt(&self, row: &RequestRecord) -> Option<Receipt> {
        let told = row.response_id.as_deref().and_then(Receipt::find);
        let seen = || self.client.and_then(|(_, client)| client.receipt());
        told.or_else(seen).or_else(|| self.backends.iter().find_map(|(_, row, _)| row.receipt()))
    }
}

fn index(observed: &[Observed]) -> (BTreeMap<TraceId, Seen<'_>>, Vec<SocketAddr>) {
    let mut by_id: BTreeMap<TraceId, Seen<'_>> = BTreeMap::new();
    let mut watched = BTreeSet::new();
    let rows = observed
        .iter()
        .enumerate()
        .flat_map(|(at, agent)| agent.rows.iter().map(move |row| (at, row)));
    for (agent, row) in rows {
        let Ok(endpoint) = row.endpoint.parse::<SocketAddr>() else { continue };
        watched.extend((row.leg == Leg::Backend).then_some(endpoint));
        let Some(id) = row.trace_id else { continue };
        let seen = by_id.entry(id).or_default();
        match row.leg {
            Leg::Client => seen.client = seen.client.or(Some((agent, row))),
            Leg::Backend => seen.backends.push((agent, row, contact(row, endpoint))),
        }
    }
    (by_id, watched.into_iter().collect())
}

fn contact(row: &KernelRow, backend: SocketAddr) -> Contact {
    let role = match row.role.as_deref() {
        Some("prefill") => Some(Phase::Prefill),
        Some("decode") => Some(Phase::Decode),
        _ => None,
    };
    let began = row.request_end_ns.map(Nanos::new);
    Contact { backend, role, began, answered: row.status == Some(200) }
}
