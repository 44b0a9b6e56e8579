//! The wire forms of paired legs (`docs/formats.md`).

use std::collections::BTreeMap;
use std::net::SocketAddr;

use protocol::TraceId;
use protocol::receipt::{Comparison, Evidence, Phase, Reason, Receipt, Verdict};
use serde::Serialize;

use super::pair::{Pair, Pairing, Unmatched, UnmatchedReason};
use super::row::LegRow;
use super::split::{Cause, Split};
use crate::endpoint::{Endpoint, Leg, Role};
use crate::observation::Outcome;

/// Name and version of a row.
pub const LEGS_SCHEMA: &str = "goodput.legs/1";
/// Name and version of the summary.
pub const DELIVERY_SCHEMA: &str = "goodput.delivery/1";

/// What the legs are judged by.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    /// Endpoints watched.
    pub endpoints: &'a [Endpoint],
    /// Nothing was lost.
    pub complete: bool,
    /// A request is slow when the client waited longer for its first token, in nanoseconds.
    pub slow_ns: i64,
}

/// One line: a pair, or a leg without counterpart. Keys are written in this order.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum LegsRow {
    /// Client leg and backend legs.
    Paired(Box<PairRow>),
    /// One leg.
    Unmatched(UnmatchedRow),
}

/// Client leg and backend legs of one request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairRow {
    schema: &'static str,
    trace_id: Option<TraceId>,
    vip: SocketAddr,
    peer: SocketAddr,
    status: Option<u16>,
    outcome: Outcome,
    /// Request end to first byte on the client leg: what the gateway took for its first sign.
    gateway_first_byte_ns: Option<i64>,
    ttft_ns: Option<i64>,
    backend_ttft_ns: Option<i64>,
    prefill: Option<SocketAddr>,
    decode: Option<SocketAddr>,
    attempts: usize,
    retries: usize,
    request_retransmits: u64,
    response_retransmits: u64,
    client_rtt_upper_bound_ns: Option<u64>,
    backends: Vec<BackendLeg>,
    split: Option<Split>,
    receipt: ReceiptRow,
}

/// One backend leg of a pair.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct BackendLeg {
    endpoint: SocketAddr,
    role: Role,
    phase: Option<Phase>,
    status: Option<u16>,
    outcome: Outcome,
    ttft_ns: Option<i64>,
    request_retransmits: u64,
    response_retransmits: u64,
    request_resent_after_ns: Option<i64>,
    handshake_rtt_ns: Option<u64>,
}

/// What the response said of its delivery, and what the kernel saw.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct ReceiptRow {
    verdict: Verdict,
    reasons: Vec<Reason>,
    prefill: Option<SocketAddr>,
    decode: Option<SocketAddr>,
}

/// A leg without counterpart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnmatchedRow {
    schema: &'static str,
    trace_id: Option<TraceId>,
    unmatched: UnmatchedReason,
    leg: Leg,
    role: Role,
    endpoint: SocketAddr,
    peer: SocketAddr,
    connection: u64,
    request_index: u64,
}

/// Counts over a window. Keys are written in this order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Delivery {
    schema: &'static str,
    window_id: String,
    complete: bool,
    pairs: usize,
    disaggregated: usize,
    retried: usize,
    unmatched: BTreeMap<&'static str, BTreeMap<&'static str, usize>>,
    receipts: BTreeMap<&'static str, usize>,
    disagreements: Vec<Disagreement>,
    backends: BTreeMap<SocketAddr, BackendCount>,
    slow_ms: f64,
    slow: usize,
    slow_causes: BTreeMap<&'static str, usize>,
    without_split: usize,
}

/// A receipt that the kernel contradicts.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Disagreement {
    trace_id: Option<TraceId>,
    reasons: Vec<Reason>,
    receipt: Receipt,
    prefill: Option<SocketAddr>,
    decode: Option<SocketAddr>,
}

/// Requests that a backend answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct BackendCount {
    prefill: usize,
    decode: usize,
    unanswered: usize,
}

/// Disagreements listed in full; all are counted.
const MOST_LISTED: usize = 20;

impl Scope<'_> {
    fn backends(&self) -> Vec<SocketAddr> {
        let backends = self.endpoints.iter().filter(|it| it.role.leg() == Leg::Backend);
        backends.map(|endpoint| endpoint.address).collect()
    }
}

/// A leg that is missing says something only where all was seen and the header reaches both phases.
fn whole(pairing: &Pairing, scope: &Scope<'_>) -> bool {
    let both =
        |pair: &Pair| pair.leg(Phase::Prefill).is_some() && pair.leg(Phase::Decode).is_some();
    scope.complete && pairing.pairs.iter().any(both)
}

pub(super) fn compare(pair: &Pair, watched: &[SocketAddr], whole: bool) -> Comparison {
    let contacts = pair.contacts();
    let evidence = Evidence { contacts: &contacts, watched, whole };
    Comparison::of(pair.receipt().as_ref(), evidence)
}

/// Every pair, then every leg without counterpart.
#[must_use]
pub fn rows(pairing: &Pairing, scope: &Scope<'_>) -> Vec<LegsRow> {
    let (watched, whole) = (scope.backends(), whole(pairing, scope));
    let paired = pairing.pairs.iter().map(|pair| {
        let comparison = compare(pair, &watched, whole);
        LegsRow::Paired(Box::new(PairRow::new(pair, comparison)))
    });
    let unmatched = pairing.unmatched.iter().map(|it| LegsRow::Unmatched(UnmatchedRow::new(it)));
    paired.chain(unmatched).collect()
}

impl PairRow {
    fn new(pair: &Pair, comparison: Comparison) -> Self {
        let client = &pair.client;
        let first_byte = client.first_byte_ns.zip(client.request_end_ns);
        Self {
            schema: LEGS_SCHEMA,
            trace_id: client.trace_id,
            vip: client.endpoint,
            peer: client.peer,
            status: client.status,
            outcome: client.outcome,
            gateway_first_byte_ns: first_byte.map(|(first, end)| first.since(end)),
            ttft_ns: client.ttft_ns(),
            backend_ttft_ns: pair.serving().and_then(LegRow::ttft_ns),
            prefill: pair.leg(Phase::Prefill).map(|leg| leg.endpoint),
            decode: pair.leg(Phase::Decode).map(|leg| leg.endpoint),
            attempts: pair.backends.len(),
            retries: pair.retries(),
            request_retransmits: client.request_retransmits,
            response_retransmits: client.response_retransmits,
            client_rtt_upper_bound_ns: client.client_rtt_upper_bound_ns,
            backends: pair
                .backends
                .iter()
                .map(|(leg, phase)| BackendLeg::new(leg, *phase))
                .collect(),
            split: Split::of(pair),
            receipt: ReceiptRow {
                verdict: comparison.verdict,
                reasons: comparison.reasons,
                prefill: pair.receipt().map(|it| it.prefill),
                decode: pair.receipt().map(|it| it.decode),
            },
        }
    }
}

impl BackendLeg {
    fn new(leg: &LegRow, phase: Option<Phase>) -> Self {
        let resent = leg.request_resent_ns.zip(leg.request_end_ns);
        Self {
            endpoint: leg.endpoint,
            role: leg.role,
            phase,
            status: leg.status,
            outcome: leg.outcome,
            ttft_ns: leg.ttft_ns(),
            request_retransmits: leg.request_retransmits,
            response_retransmits: leg.response_retransmits,
            request_resent_after_ns: resent.map(|(resent, end)| resent.since(end)),
            handshake_rtt_ns: leg.handshake_rtt_ns,
        }
    }
}

impl UnmatchedRow {
    fn new(unmatched: &Unmatched) -> Self {
        let row = &unmatched.row;
        Self {
            schema: LEGS_SCHEMA,
            trace_id: row.trace_id,
            unmatched: unmatched.reason,
            leg: row.leg,
            role: row.role,
            endpoint: row.endpoint,
            peer: row.peer,
            connection: row.connection,
            request_index: row.request_index,
        }
    }
}

/// Counts over everything that was paired in window `window_id`.
#[must_use]
pub fn delivery(window_id: String, pairing: &Pairing, scope: &Scope<'_>) -> Delivery {
    let (watched, whole) = (scope.backends(), whole(pairing, scope));
    let mut delivery = Delivery::empty(window_id, scope);
    for pair in &pairing.pairs {
        delivery.add(pair, compare(pair, &watched, whole), scope.slow_ns);
    }
    for unmatched in &pairing.unmatched {
        let leg = delivery.unmatched.entry(leg_name(unmatched.row.leg)).or_default();
        *leg.entry(unmatched.reason.code()).or_default() += 1;
    }
    delivery
}

/// Name of a leg in rows and labels.
#[must_use]
pub(crate) const fn leg_name(leg: Leg) -> &'static str {
    match leg {
        Leg::Client => "client",
        Leg::Backend => "backend",
    }
}

impl Delivery {
    fn empty(window_id: String, scope: &Scope<'_>) -> Self {
        Self {
            schema: DELIVERY_SCHEMA,
            window_id,
            complete: scope.complete,
            pairs: 0,
            disaggregated: 0,
            retried: 0,
            unmatched: BTreeMap::new(),
            receipts: Verdict::ALL.into_iter().map(|verdict| (verdict.code(), 0)).collect(),
            disagreements: Vec::new(),
            backends: scope
                .backends()
                .into_iter()
                .map(|it| (it, BackendCount::default()))
                .collect(),
            slow_ms: milliseconds(scope.slow_ns),
            slow: 0,
            slow_causes: Cause::ALL.into_iter().map(|cause| (cause.code(), 0)).collect(),
            without_split: 0,
        }
    }

    fn add(&mut self, pair: &Pair, comparison: Comparison, slow_ns: i64) {
        let at = |phase| pair.leg(phase).map(|leg| leg.endpoint);
        let (prefill, decode) = (at(Phase::Prefill), at(Phase::Decode));
        self.pairs += 1;
        self.disaggregated += usize::from(prefill.is_some());
        self.retried += usize::from(pair.retries() > 0);
        *self.receipts.entry(comparison.verdict.code()).or_default() += 1;
        if let (Verdict::Disagree, Some(receipt)) = (comparison.verdict, pair.receipt())
            && self.disagreements.len() < MOST_LISTED
        {
            let (trace_id, reasons) = (pair.client.trace_id, comparison.reasons);
            self.disagreements.push(Disagreement { trace_id, reasons, receipt, prefill, decode });
        }
        for (leg, phase) in &pair.backends {
            let count = self.backends.entry(leg.endpoint).or_default();
            match phase.filter(|_| leg.answered()) {
                Some(Phase::Prefill) => count.prefill += 1,
                Some(Phase::Decode) => count.decode += 1,
                None => count.unanswered += 1,
            }
        }
        self.add_split(Split::of(pair), slow_ns);
    }

    fn add_split(&mut self, split: Option<Split>, slow_ns: i64) {
        match split {
            None => self.without_split += 1,
            Some(split) if split.total_ns() > slow_ns => {
                self.slow += 1;
                *self.slow_causes.entry(split.cause.code()).or_default() += 1;
            }
            Some(_) => {}
        }
    }
}

/// Exact up to 2^53 nanoseconds, which is 104 days.
#[expect(clippy::cast_precision_loss, reason = "a bound of days is no time to first token")]
fn milliseconds(ns: i64) -> f64 {
    ns as f64 / 1e6
}
