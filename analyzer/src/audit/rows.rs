//! Wire forms of an audit folder (`docs/formats.md`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::records::Versioned;
use crate::rundir::Leg;

/// Lengths of the prefixes, in bytes of the prompt's value.
pub const PREFIX_SIZES: [u32; 4] = [1 << 10, 4 << 10, 16 << 10, 64 << 10];

/// What an endpoint is to the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A virtual address of a gateway.
    Vip,
    /// A backend.
    Backend,
    /// A backend that computes prompts.
    Prefill,
    /// A backend that generates tokens.
    Decode,
}

impl Role {
    /// Its code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Vip => "vip",
            Self::Backend => "backend",
            Self::Prefill => "prefill",
            Self::Decode => "decode",
        }
    }
}

/// How far a recording got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It was begun; nobody wrote that it ended.
    Recording,
    /// It lasted as long as was asked for.
    Complete,
    /// It was ended early, in order: what is there is whole.
    Interrupted,
}

/// `audit.json`; keys are written in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditFile {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// How far it got.
    pub state: State,
    /// Length that was asked for, ns.
    pub asked_ns: u64,
    /// Lengths of the prefixes that were hashed, bytes.
    pub prefix_sizes: Vec<u32>,
    /// Every agent.
    pub agents: Vec<AgentPart>,
}

impl Versioned for AuditFile {
    const SCHEMA: &'static str = "goodput.audit/1";
}

/// One agent's part of an audit; keys are written in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentPart {
    /// Its name.
    pub name: String,
    /// URL of its API; null when it recorded the folder itself.
    pub url: Option<String>,
    /// Its version.
    pub version: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Where its records come from.
    pub source: String,
    /// Endpoints that it watches.
    pub endpoints: Vec<EndpointPart>,
    /// Start of its window after the start of the first agent's, ns, by one clock.
    pub opened_after_ns: u64,
    /// Its own account of the window; null while none was given.
    pub account: Option<Account>,
    /// Coded reasons why rows are missing.
    pub problems: Vec<String>,
    /// Names of its files.
    pub files: Files,
}

/// An endpoint that an agent watches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EndpointPart {
    /// address:port.
    pub address: String,
    /// Its role.
    pub role: Role,
}

/// What closing a window answered; the keys that are not read here are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// When it was opened, CLOCK_MONOTONIC ns of the agent's host.
    pub opened_ns: u64,
    /// When it was closed.
    pub closed_ns: u64,
    /// Nothing was lost, unparsed, adopted or left open.
    pub complete: bool,
    /// Why it is not complete.
    pub reasons: Vec<String>,
    /// Requests seen.
    pub observations: u64,
    /// Requests that were in flight at its end.
    pub open_requests: u64,
    /// Everything else.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// Names of an agent's files in the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// Rows of `kernel.jsonl`.
    pub kernel: String,
    /// Rows of `inflight.jsonl`.
    pub inflight: String,
    /// Rows of `prefixes.jsonl`.
    pub prefixes: String,
    /// A window's concentration.
    pub concentration: String,
}

impl Files {
    /// Of the only agent, or of agent `number` of several, from 1.
    #[must_use]
    pub fn new(number: Option<usize>) -> Self {
        let suffix = number.map(|number| format!("-{number}")).unwrap_or_default();
        Self {
            kernel: format!("kernel{suffix}.jsonl"),
            inflight: format!("inflight{suffix}.jsonl"),
            prefixes: format!("prefixes{suffix}.jsonl"),
            concentration: format!("concentration{suffix}.json"),
        }
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> [&str; 4] {
        [&self.kernel, &self.inflight, &self.prefixes, &self.concentration]
    }
}

/// What an audit reads of a line of `kernel.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRow {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// address:port.
    pub endpoint: String,
    /// Which side of the gateway.
    pub leg: Leg,
    /// Role of the endpoint.
    pub role: Role,
    /// Number of the connection.
    pub connection: u64,
    /// Number of the request on it.
    pub request_index: u64,
    /// Stamp of its first byte, where that was seen.
    pub request_first_ns: Option<u64>,
    /// Class.
    pub outcome: String,
    /// What hides the requests of the connection, if anything does.
    pub opaque: Option<String>,
}

impl Versioned for RequestRow {
    const SCHEMA: &'static str = "goodput.kernel/1";
}

/// Where the hashing of a prompt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptEnd {
    /// At the prompt's own end: longer prefixes do not exist.
    Whole,
    /// At the longest prefix.
    Longest,
    /// At bytes that the agent did not see: longer prefixes are not known.
    Cut,
    /// There is no prompt in the request.
    Absent,
}

/// A line of `prefixes.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixRow {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// address:port.
    pub endpoint: String,
    /// Number of the connection.
    pub connection: u64,
    /// Number of the request on it.
    pub request_index: u64,
    /// Bytes of the prompt that were hashed.
    pub prompt_bytes: u32,
    /// Why no more were.
    pub prompt_end: PromptEnd,
    /// Keyed hash of each prefix in [`PREFIX_SIZES`], null where there is none or it was not seen.
    pub prefixes: [Option<String>; PREFIX_SIZES.len()],
}

impl Versioned for PrefixRow {
    const SCHEMA: &'static str = "goodput.prefix/1";
}

/// What an audit reads of a window's concentration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConcentrationRow {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// By role.
    pub roles: Vec<RoleLoad>,
}

impl Versioned for ConcentrationRow {
    const SCHEMA: &'static str = "goodput.concentration/1";
}

/// Requests in flight of one role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleLoad {
    /// The role.
    pub role: Role,
    /// Each backend.
    pub endpoints: Vec<BackendLoad>,
}

/// Requests in flight at one backend over the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackendLoad {
    /// address:port.
    pub endpoint: String,
    /// Time-weighted mean.
    pub requests_mean: f64,
    /// Highest number, however short.
    pub requests_peak: u64,
}
