//! Recordings made by hand, and what must and must not be said of them.

mod files;
mod recording;
mod statistics;

use serde_json::json;

use super::folder::{AgentRows, Recording};
use super::rows::*;
use super::*;
use crate::records::Versioned as _;
use crate::rundir::Leg;

/// A request of a scene: the document that it asks about, and where it went.
#[derive(Clone, Copy, Debug)]
struct Asked {
    document: usize,
    backend: usize,
    connection: u64,
}

/// One agent's recording, which tests change.
struct Scene {
    agent: AgentRows,
    state: State,
}

fn backend(number: usize) -> String {
    format!("10.0.1.{}:8000", number + 1)
}

fn account(observations: usize) -> Account {
    serde_json::from_value(json!({
        "window_id": "w1", "label": "audit", "opened_ns": 1000, "closed_ns": 60_000_001_000_u64,
        "complete": true, "reasons": [], "observations": observations, "open_requests": 0,
        "counters": { "gaps": 0 },
    }))
    .unwrap()
}

impl Scene {
    /// Requests in order, each on a connection of its own unless it says otherwise, whose prompts share
    /// all prefixes with those of the same document.
    fn new(backends: usize, asked: &[Asked]) -> Self {
        let endpoint = |number| EndpointPart { address: backend(number), role: Role::Backend };
        let part = AgentPart {
            name: "gw".to_owned(),
            url: None,
            version: "0.1.0".to_owned(),
            kernel: "6.18".to_owned(),
            source: "tcx".to_owned(),
            endpoints: (0..backends).map(endpoint).collect(),
            opened_after_ns: 0,
            account: Some(account(asked.len())),
            problems: Vec::new(),
            files: Files::new(None),
        };
        let numbered = asked.iter().enumerate();
        let requests = numbered.clone().map(|(at, asked)| request(at, asked)).collect();
        let prefixes = numbered.map(|(at, asked)| prefix(at, asked)).collect();
        let agent = AgentRows {
            part,
            requests,
            prefixes,
            concentration: None,
            problems: std::collections::BTreeSet::new(),
        };
        Self { agent, state: State::Complete }
    }

    fn account(&mut self) -> &mut Account {
        self.agent.part.account.as_mut().unwrap()
    }

    fn recording(&self) -> Recording {
        Recording { state: self.state, asked_ns: 60_000_000_000, agents: vec![self.agent.clone()] }
    }

    fn report(&self) -> AuditReport {
        analyze(&self.recording())
    }

    fn role(&self) -> RoleReport {
        let report = self.report();
        assert_eq!(report.roles.len(), 1);
        report.roles[0].clone()
    }
}

fn request(at: usize, asked: &Asked) -> RequestRow {
    RequestRow {
        schema: RequestRow::SCHEMA.to_owned(),
        endpoint: backend(asked.backend),
        leg: Leg::Backend,
        role: Role::Backend,
        connection: asked.connection,
        request_index: at as u64,
        request_first_ns: Some(2000 + at as u64 * 1000),
        outcome: "ok".to_owned(),
        opaque: None,
    }
}

fn prefix(at: usize, asked: &Asked) -> PrefixRow {
    PrefixRow {
        schema: PrefixRow::SCHEMA.to_owned(),
        endpoint: backend(asked.backend),
        connection: asked.connection,
        request_index: at as u64,
        prompt_bytes: 65_536,
        prompt_end: PromptEnd::Longest,
        prefixes: [0, 1, 2, 3].map(|size| Some(format!("{size}-{}", asked.document))),
    }
}

/// A sequence without pattern: the same for the same seed.
fn random(seed: u64) -> impl Iterator<Item = usize> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize
    })
}

/// `requests` questions about `documents` documents in random order, sent on as `route` says: it gets
/// the number of the request and its document.
fn traffic(requests: usize, documents: usize, route: impl Fn(usize, usize) -> usize) -> Vec<Asked> {
    let ask = |(at, number): (usize, usize)| {
        let document = number % documents;
        Asked { document, backend: route(at, document), connection: at as u64 }
    };
    random(7).take(requests).enumerate().map(ask).collect()
}

fn codes(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.code.code()).collect()
}
