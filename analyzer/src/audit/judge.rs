//! What keeps an audit from judging.

use std::collections::BTreeSet;

use serde::Serialize;

use super::fleet::{ClientLeg, Fleet, RoleTraffic};
use super::folder::{AgentRows, Recording};
use super::rows::State;

/// Requests below which shares say nothing.
const MIN_REQUESTS: u64 = 20;
/// Share of requests in flight at the end, above which what is missing may matter.
const MAX_OPEN: f64 = 0.05;
/// Share of the clients' requests that the watched backends must have got.
const MIN_ACCOUNTED: f64 = 0.95;
/// Causes of an incomplete window that lose no request: they are told, and block nothing.
const HARMLESS: [&str; 4] =
    ["adopted_connection", "missed_transitions", "connection_drift", "open_requests"];

/// Why there is no judgement; the codes are stable (`docs/audit.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The recording has no account of what it lost.
    NoAccount,
    /// Requests may have passed unseen.
    Loss,
    /// Requests can't be told apart on some connections.
    Opaque,
    /// Too many requests had not ended.
    OpenRequests,
    /// Too few requests.
    FewRequests,
    /// There is nothing to choose from.
    OneBackend,
    /// A backend had no request, and no VIP is watched that would show whether it should have.
    BackendNotObserved,
    /// Clients sent more requests than the watched backends got.
    RequestsUnaccounted,
    /// Prompts were not seen far enough.
    HashesMissing,
    /// Too few requests share a prefix.
    FewRepeats,
    /// Too few different prefixes are shared.
    FewPrefixes,
    /// Nearly everything goes to one backend.
    OneBackendTakesAll,
    /// What returns to its backend does so on the same connection.
    SameConnections,
    /// Requests go to the backends in turn, which sends equal prefixes to equal backends when they
    /// come in step with it.
    InTurn,
    /// The interval holds affinity and none.
    Inconclusive,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 15] = [
        Self::NoAccount,
        Self::Loss,
        Self::Opaque,
        Self::OpenRequests,
        Self::FewRequests,
        Self::OneBackend,
        Self::BackendNotObserved,
        Self::RequestsUnaccounted,
        Self::HashesMissing,
        Self::FewRepeats,
        Self::FewPrefixes,
        Self::OneBackendTakesAll,
        Self::SameConnections,
        Self::InTurn,
        Self::Inconclusive,
    ];

    /// Its code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoAccount => "no_account",
            Self::Loss => "loss",
            Self::Opaque => "opaque",
            Self::OpenRequests => "open_requests",
            Self::FewRequests => "few_requests",
            Self::OneBackend => "one_backend",
            Self::BackendNotObserved => "backend_not_observed",
            Self::RequestsUnaccounted => "requests_unaccounted",
            Self::HashesMissing => "hashes_missing",
            Self::FewRepeats => "few_repeats",
            Self::FewPrefixes => "few_prefixes",
            Self::OneBackendTakesAll => "one_backend_takes_all",
            Self::SameConnections => "same_connections",
            Self::InTurn => "in_turn",
            Self::Inconclusive => "inconclusive",
        }
    }

    /// What would give a judgement.
    #[must_use]
    pub const fn mend(self) -> &'static str {
        match self {
            Self::NoAccount => "record it anew and let the recorder end, with Ctrl-C if need be",
            Self::Loss => "docs/agent.md#windows has the mend of each cause; record it anew",
            Self::Opaque => "watch the leg on which requests are plain HTTP/1.1",
            Self::OpenRequests | Self::FewRequests | Self::FewRepeats | Self::Inconclusive => {
                "record for longer"
            }
            Self::OneBackend => "name every backend as an endpoint of an agent",
            Self::BackendNotObserved | Self::RequestsUnaccounted => {
                "watch the VIP and every backend; compare with the gateway's own list"
            }
            Self::HashesMissing => {
                "raise the agents' request_budget_bytes above the prefix and the head, and restart them"
            }
            Self::FewPrefixes => "audit while several sessions or documents are asked about",
            Self::OneBackendTakesAll => {
                "see whether the other backends are up; the shares tell the rest"
            }
            Self::SameConnections => "audit while clients open new connections",
            Self::InTurn => "audit while requests come in another order",
        }
    }
}

/// A reason with its figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The code.
    pub code: Reason,
    /// What was found, for people.
    pub detail: String,
    /// What would give a judgement.
    pub mend: &'static str,
}

impl Finding {
    pub(super) fn new(code: Reason, detail: String) -> Self {
        Self { code, detail, mend: code.mend() }
    }
}

/// What makes every judgement of a recording impossible.
pub(super) fn of_recording(recording: &Recording) -> Vec<Finding> {
    let mut findings = Vec::new();
    if recording.state == State::Recording {
        let detail = "the recorder was killed: its account of losses is missing".to_owned();
        findings.push(Finding::new(Reason::NoAccount, detail));
    }
    for agent in &recording.agents {
        let name = &agent.part.name;
        if agent.part.account.is_none() && recording.state != State::Recording {
            let detail = format!("{name} gave no account of its window");
            findings.push(Finding::new(Reason::NoAccount, detail));
        }
        let causes = causes(agent);
        if !causes.is_empty() {
            let causes: Vec<&str> = causes.into_iter().collect();
            findings.push(Finding::new(Reason::Loss, format!("{name}: {}", causes.join(", "))));
        }
        findings.extend(open(agent));
    }
    findings
}

/// Causes by which requests may be missing.
fn causes(agent: &AgentRows) -> BTreeSet<&str> {
    let told = agent.part.account.iter().flat_map(|account| &account.reasons);
    let told = told.map(String::as_str).filter(|cause| !HARMLESS.contains(cause));
    told.chain(agent.problems.iter().map(String::as_str)).collect()
}

fn open(agent: &AgentRows) -> Option<Finding> {
    let account = agent.part.account.as_ref()?;
    let (open, seen) = (account.open_requests, account.observations);
    let many = open as f64 > MAX_OPEN * (open + seen) as f64;
    let detail = || format!("{}: {open} requests were in flight at the end", agent.part.name);
    many.then(|| Finding::new(Reason::OpenRequests, detail()))
}

/// What is noted and blocks nothing.
pub(super) fn notes(recording: &Recording) -> Vec<String> {
    let mut notes = Vec::new();
    if recording.state == State::Interrupted {
        notes.push("the recording was ended before its time".to_owned());
    }
    for agent in &recording.agents {
        let reasons = agent.part.account.iter().flat_map(|account| &account.reasons);
        let harmless = reasons.filter(|reason| HARMLESS.contains(&reason.as_str()));
        notes.extend(harmless.map(|reason| format!("{}: {reason}", agent.part.name)));
    }
    notes
}

/// What makes the judgements of one role impossible.
pub(super) fn of_role(traffic: &RoleTraffic, clients: &ClientLeg) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |reason, detail| findings.push(Finding::new(reason, detail));
    let requests: u64 = traffic.backends.iter().map(|backend| backend.requests).sum();
    let opaque: u64 = traffic.backends.iter().map(|backend| backend.opaque).sum();
    if opaque > 0 {
        find(Reason::Opaque, format!("{opaque} connections are TLS, HTTP/2 or a tunnel"));
    }
    if traffic.backends.len() < 2 {
        find(Reason::OneBackend, format!("the only {} watched", traffic.role.code()));
    }
    if requests < MIN_REQUESTS {
        find(Reason::FewRequests, format!("{requests} requests, {MIN_REQUESTS} are needed"));
    }
    let accounted = MIN_ACCOUNTED * clients.sent_on as f64;
    if (requests as f64) < accounted {
        let sent = clients.sent_on;
        let detail = format!("the VIPs passed on {sent} requests, the backends got {requests}");
        find(Reason::RequestsUnaccounted, detail);
    }
    let silent = traffic.backends.iter().filter(|it| it.requests == 0);
    let silent: Vec<&str> = silent.map(|it| it.address.as_str()).collect();
    if !silent.is_empty() && clients.requests == 0 {
        find(Reason::BackendNotObserved, format!("no request was seen at {}", silent.join(", ")));
    }
    findings
}

/// Whether any backend is watched at all.
pub(super) fn nothing_to_judge(fleet: &Fleet) -> Option<Finding> {
    let detail = || "no backend is among the endpoints".to_owned();
    fleet.roles.is_empty().then(|| Finding::new(Reason::OneBackend, detail()))
}
