//! The audit's result.

use serde::Serialize;

use super::affinity::{Affinity, SizeAffinity, affinity};
use super::fleet::{ClientLeg, Fleet, RoleTraffic};
use super::folder::Recording;
use super::judge::{self, Finding, Reason};
use super::reading;
use super::rows::{PREFIX_SIZES, Role, State};
use super::spread::{self, Evenness, InTurn, Share};

/// Name and version of the form.
const SCHEMA: &str = "goodput.audit-report/1";

/// The result; keys are written in this order, and the same folder gives the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditReport {
    schema: &'static str,
    /// How far the recording got.
    pub state: State,
    /// Length that was asked for, ns.
    pub asked_ns: u64,
    /// Length of the longest window, ns; null when no agent told.
    pub covered_ns: Option<u64>,
    /// Names of the agents.
    pub agents: Vec<String>,
    /// Requests with a prompt that clients sent to the VIPs.
    pub client_requests: u64,
    /// What makes every judgement impossible.
    pub reasons: Vec<Finding>,
    /// What is worth knowing and makes none impossible.
    pub notes: Vec<String>,
    /// By role.
    pub roles: Vec<RoleReport>,
}

/// What went to the backends of one role; keys are written in this order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoleReport {
    /// The role.
    pub role: Role,
    /// Requests with a prompt.
    pub requests: u64,
    /// Requests without one, such as health checks: in no other figure.
    pub other_requests: u64,
    /// Each backend.
    pub backends: Vec<BackendReport>,
    /// Farthest that a share may be from the equal one, by the intervals; a share, not points.
    pub equal_within: Option<f64>,
    /// Whether shares are equal.
    pub evenness: Evenness,
    /// Whether requests go to the backends in turn.
    pub in_turn: Option<InTurn>,
    /// Largest over mean of the backends' time-weighted requests in flight; null when idle or not told.
    pub concentration: Option<f64>,
    /// What makes the judgements of this role impossible, those of the whole audit included.
    pub reasons: Vec<Finding>,
    /// Affinity over all lengths.
    pub affinity: Affinity,
    /// Affinity by length of the prefix.
    pub prefixes: Vec<SizeAffinity>,
    /// What the figures are consistent with; null where they bear no sentence.
    pub reading: Option<String>,
}

/// One backend; keys are written in this order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BackendReport {
    /// address:port.
    pub backend: String,
    /// Name of the agent whose rows are used.
    pub agent: String,
    /// Requests with a prompt.
    pub requests: u64,
    /// Share of the role's, and its 95 % Wilson interval.
    pub share: Option<f64>,
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Time-weighted mean of requests in flight.
    pub in_flight_mean: Option<f64>,
    /// Most at a time.
    pub in_flight_peak: Option<u64>,
}

impl AuditReport {
    /// Every role could be judged.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        let judged = |role: &RoleReport| role.affinity != Affinity::Unknown;
        self.reasons.is_empty() && !self.roles.is_empty() && self.roles.iter().all(judged)
    }
}

/// Judges a recording.
#[must_use]
pub fn analyze(recording: &Recording) -> AuditReport {
    let fleet = Fleet::new(recording);
    let mut reasons = judge::of_recording(recording);
    reasons.extend(judge::nothing_to_judge(&fleet));
    let covered = recording.agents.iter().filter_map(|agent| agent.part.account.as_ref());
    let covered = covered.map(|account| account.closed_ns.saturating_sub(account.opened_ns));
    let role = |traffic: &RoleTraffic| of_role(traffic, &fleet.clients, &reasons);
    let roles = fleet.roles.iter().map(role).collect();
    AuditReport {
        schema: SCHEMA,
        state: recording.state,
        asked_ns: recording.asked_ns,
        covered_ns: covered.max(),
        agents: recording.agents.iter().map(|agent| agent.part.name.clone()).collect(),
        client_requests: fleet.clients.requests,
        notes: judge::notes(recording),
        roles,
        reasons,
    }
}

fn of_role(traffic: &RoleTraffic, clients: &ClientLeg, whole: &[Finding]) -> RoleReport {
    let mut reasons = whole.to_vec();
    reasons.extend(judge::of_role(traffic, clients));
    let counts: Vec<u64> = traffic.backends.iter().map(|backend| backend.requests).collect();
    let shares = spread::shares(&counts);
    let in_turn = spread::in_turn(&traffic.requests, traffic.backends.len());
    let mut prefixes: Vec<SizeAffinity> =
        (0..PREFIX_SIZES.len()).map(|size| affinity(&traffic.requests, size)).collect();
    prefixes.iter_mut().for_each(|size| withhold(size, &reasons, in_turn));
    let mut report = RoleReport {
        role: traffic.role,
        requests: counts.iter().sum(),
        other_requests: traffic.backends.iter().map(|backend| backend.others).sum(),
        backends: backends(traffic, &shares),
        equal_within: spread::equal_within(&shares),
        evenness: if reasons.is_empty() { spread::evenness(&counts) } else { Evenness::Unknown },
        in_turn,
        concentration: concentration(traffic),
        affinity: reading::affinity(&prefixes),
        reasons,
        prefixes,
        reading: None,
    };
    report.reading = reading::reading(&report);
    report
}

/// Takes a judgement back that the circumstances do not bear; the figures stay.
fn withhold(size: &mut SizeAffinity, reasons: &[Finding], in_turn: Option<InTurn>) {
    if !reasons.is_empty() {
        size.judgement = Affinity::Unknown;
        size.reasons = reasons.to_vec();
    } else if size.judgement == Affinity::Sticky && in_turn.is_some_and(|it| it.in_turn) {
        size.judgement = Affinity::Unknown;
        let detail = "prefixes come in step with the turns".to_owned();
        size.reasons = vec![Finding::new(Reason::InTurn, detail)];
    }
}

fn backends(traffic: &RoleTraffic, shares: &[Option<Share>]) -> Vec<BackendReport> {
    let report = |(backend, share): (&super::fleet::Backend, &Option<Share>)| BackendReport {
        backend: backend.address.clone(),
        agent: backend.agent.clone(),
        requests: backend.requests,
        share: share.map(|it| it.share),
        low: share.map(|it| it.low),
        high: share.map(|it| it.high),
        in_flight_mean: backend.in_flight_mean,
        in_flight_peak: backend.in_flight_peak,
    };
    traffic.backends.iter().zip(shares).map(report).collect()
}

fn concentration(traffic: &RoleTraffic) -> Option<f64> {
    let means: Option<Vec<f64>> = traffic.backends.iter().map(|it| it.in_flight_mean).collect();
    let means = means?;
    let mean = means.iter().sum::<f64>() / means.len().max(1) as f64;
    (mean > 0.0).then(|| means.iter().copied().fold(0.0, f64::max) / mean)
}
