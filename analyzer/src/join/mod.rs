//! Client and kernel, joined by trace id: two records of the same requests, compared.
//!
//! Pure: rows in, figures out. Durations only are compared across hosts.

mod agreement;
mod distribution;
mod index;
mod receipts;
mod split;
mod unit;

pub use agreement::{Disagreement, Flip, Judge};
pub use distribution::Distribution;
pub use receipts::{Receipts, WrongReceipt};
pub use split::TtftSplit;

use std::collections::BTreeMap;

use protocol::TraceId;
use serde::{Deserialize, Serialize};

use crate::records::{AgentRecord, RequestRecord};
use crate::rundir::{KernelRow, Leg};
use index::Legs;

/// One agent's observations of a window, with its own account of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// What the agent said of the window.
    pub account: AgentRecord,
    /// What it saw.
    pub rows: Vec<KernelRow>,
}

/// How far client and kernel agree on one window, or on several together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrossCheck {
    /// Requests delivered whole according to the client.
    pub completed: u64,
    /// Of these, seen on the client leg.
    pub on_client_leg: u64,
    /// Of these, seen on a backend leg.
    pub on_backend_leg: u64,
    /// Share of completed requests that lack a leg; nothing when none completed.
    pub unpaired_share: Option<f64>,
    /// Client TTFT from sent minus the client leg's TTFT.
    pub ttft_difference: Distribution,
    /// Client TPOT minus the client leg's TPOT.
    pub tpot_difference: Distribution,
    /// 99th percentile (type 1) of the magnitude of the TTFT difference, us.
    pub ttft_magnitude_p99_us: Option<f64>,
    /// Requests good by one side's stamps only.
    pub verdict_flips: Vec<Flip>,
    /// Requests whose outcome or framing the two sides judge differently, or whose durations differ by a unit.
    pub disagreements: Vec<Disagreement>,
    /// Where TTFT went.
    pub split: TtftSplit,
    /// Requests that the kernel saw each backend get.
    pub backend_requests: BTreeMap<String, u64>,
    /// What gateways said of disaggregated requests, against the backends seen.
    #[serde(default)]
    pub receipts: Receipts,
    /// Share of requests whose first token's client stamp may be that of later bytes.
    pub coalesced_share: Option<f64>,
    /// Packets that the agents' observations are made of.
    pub packets_expected: u64,
    /// Packets of watched endpoints by the agents' own counters; nothing when one does not say.
    pub packets_counted: Option<u64>,
    /// Every agent lost nothing, and its file holds all that it observed.
    pub complete: bool,
    /// Coded reasons of the agents that lost something, and files that hold less than the agents counted, each as `agent: reason`.
    pub incomplete_reasons: Vec<String>,
}

/// Joins one window.
#[must_use]
pub fn join(requests: &[RequestRecord], observed: &[Observed], judge: Judge) -> CrossCheck {
    let legs = Legs::of(observed);
    let completed: Vec<&RequestRecord> =
        requests.iter().filter(|row| row.class.is_delivered()).collect();
    let seen = |leg: Leg| count(completed.iter().filter(|row| legs.has(row.trace_id, leg)));
    let paired =
        count(completed.iter().filter(|row| {
            legs.has(row.trace_id, Leg::Client) && legs.has(row.trace_id, Leg::Backend)
        }));
    let total = count(completed.iter());
    let ttft = differences(&completed, &legs, |row, kernel| {
        Some(row.ttft_from_sent_ns?.saturating_sub(kernel.ttft_ns()?))
    });
    let tpot = differences(&completed, &legs, |row, kernel| {
        Some(i64::try_from(row.tpot_ns?).ok()?.saturating_sub(kernel.tpot_ns()?))
    });
    let (counted, expected) = packets(observed);
    let reasons = incomplete_reasons(observed);
    CrossCheck {
        completed: total,
        on_client_leg: seen(Leg::Client),
        on_backend_leg: seen(Leg::Backend),
        unpaired_share: share(total - paired, total),
        ttft_magnitude_p99_us: distribution::magnitude_p99_us(&ttft),
        ttft_difference: Distribution::of_ns(&ttft),
        tpot_difference: Distribution::of_ns(&tpot),
        verdict_flips: agreement::flips(&completed, &legs, judge),
        disagreements: agreement::disagreements(requests, &legs),
        split: TtftSplit::of(&completed, &legs),
        backend_requests: backend_requests(requests, observed),
        receipts: Receipts::of(&completed, observed),
        coalesced_share: coalesced_share(requests),
        packets_expected: expected,
        packets_counted: counted,
        complete: !observed.is_empty() && reasons.is_empty(),
        incomplete_reasons: reasons,
    }
}

fn count<T>(items: impl Iterator<Item = T>) -> u64 {
    items.count() as u64
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn differences(
    completed: &[&RequestRecord],
    legs: &Legs<'_>,
    difference: impl Fn(&RequestRecord, &KernelRow) -> Option<i64>,
) -> Vec<i64> {
    completed
        .iter()
        .filter_map(|row| difference(row, legs.get(row.trace_id, Leg::Client)?))
        .collect()
}

/// Counted by the agents, and at least needed for what they observed.
fn packets(observed: &[Observed]) -> (Option<u64>, u64) {
    let counted = observed
        .iter()
        .map(|agent| agent.account.counters.get("endpoint_packets").and_then(|v| v.as_u64()))
        .try_fold(0, |sum: u64, counted| Some(sum.saturating_add(counted?)));
    let rows = observed.iter().flat_map(|agent| &agent.rows);
    (
        counted.filter(|_| !observed.is_empty()),
        rows.filter_map(|row| row.segments).fold(0, u64::saturating_add),
    )
}

fn incomplete_reasons(observed: &[Observed]) -> Vec<String> {
    let of = |agent: &Observed| -> Vec<String> {
        let AgentRecord { name, reasons, complete, .. } = &agent.account;
        let own = match (complete, reasons.as_slice()) {
            (true, _) => Vec::new(),
            (false, []) => vec!["no reason given".to_owned()],
            (false, reasons) => reasons.to_vec(),
        };
        let all = own.into_iter().chain(short(agent));
        all.map(|reason| format!("{name}: {reason}")).collect()
    };
    observed.iter().flat_map(of).collect()
}

/// `kernel.jsonl` against the number of observations that the agent gave when it closed the window. An
/// agent that could not be asked gives none, and says so in its own reasons.
fn short(agent: &Observed) -> Option<String> {
    let held = agent.rows.len() as u64;
    match agent.account.observations {
        Some(n) if n == held => None,
        Some(n) => Some(format!("{held} observations in kernel.jsonl, {n} in the agent's account")),
        None if agent.account.complete => Some(format!(
            "{held} observations in kernel.jsonl, none counted in the agent's account"
        )),
        None => None,
    }
}

/// Counts backend-leg observations of this window's own requests.
fn backend_requests(requests: &[RequestRecord], observed: &[Observed]) -> BTreeMap<String, u64> {
    let own: std::collections::BTreeSet<TraceId> =
        requests.iter().map(|row| row.trace_id).collect();
    let rows = observed.iter().flat_map(|agent| &agent.rows);
    let mut counts = BTreeMap::new();
    // Two agents may both see a leg (one at each end): a request counts once per backend.
    let mut seen = std::collections::BTreeSet::new();
    for row in rows.filter(|row| row.leg == Leg::Backend) {
        let Some(id) = row.trace_id.filter(|id| own.contains(id)) else { continue };
        if seen.insert((id, &row.endpoint)) {
            *counts.entry(row.endpoint.clone()).or_insert(0) += 1;
        }
    }
    counts
}

fn coalesced_share(requests: &[RequestRecord]) -> Option<f64> {
    let known = count(requests.iter().filter(|row| row.coalesced_read.is_some()));
    share(count(requests.iter().filter(|row| row.coalesced_read == Some(true))), known)
}

#[cfg(test)]
mod tests;
