//! What a replay needs to know.

use std::num::NonZeroUsize;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::target::Target;
use super::token::BearerToken;
use crate::prompt::{BodyOptions, Salt};
use crate::schedule::Schedule;
use crate::trace::Trace;

const DEFAULT_STALL_NS: u64 = 10_000_000_000;
/// More event loops than this only move work between cores: one carries thousands of streams.
const MAX_WORKERS: usize = 4;

/// How long a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// From the planned instant, nanoseconds.
    pub deadline_ns: u64,
    /// Past the deadline, a stream whose last body byte is older than this counts as stalled.
    pub stall_ns: u64,
}

impl RequestLimits {
    /// This deadline, with the default stall time of 10 s.
    #[must_use]
    pub fn with_deadline_ns(deadline_ns: u64) -> Self {
        Self { deadline_ns, stall_ns: DEFAULT_STALL_NS }
    }
}

/// Whether a connection carries one request or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// A connection of its own for every request: gateways that pin a connection to a backend choose anew.
    #[default]
    Fresh,
    /// A connection whose response has ended takes the next request that is due; without an idle one a new
    /// one is opened, so that the loop stays open.
    KeepAlive,
}

/// Knobs that make the client worse on purpose, so that tests can see the client's part move. All
/// off by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Time between the clock reading called `sent` and the write of the last request byte, nanoseconds.
    pub hold_last_byte_ns: u64,
    /// Time between readiness and the read, nanoseconds. Kernel stamps do not move with it.
    pub read_delay_ns: u64,
    /// Takes the client's clock although the kernel could stamp.
    pub clock_stamps: bool,
}

/// Which repetition this is; copied into `run.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunIdentity {
    /// Arm.
    pub arm: String,
    /// Repetition; 0 is the warm-up.
    pub repetition: u32,
}

/// One repetition to replay.
#[derive(Clone, Debug)]
pub struct ReplayConfig<'a> {
    /// Which repetition this is.
    pub identity: RunIdentity,
    /// Where requests go.
    pub target: &'a Target,
    /// Sent as `Authorization: Bearer`.
    pub bearer: Option<&'a BearerToken>,
    /// Rows that the schedule refers to.
    pub trace: &'a Trace,
    /// When each is sent.
    pub schedule: &'a Schedule,
    /// How bodies are written.
    pub body: &'a BodyOptions,
    /// Keeps this repetition's prefixes apart from all others.
    pub salt: Option<Salt>,
    /// Whether connections are used again.
    pub connections: Connections,
    /// How long a request may take.
    pub limits: RequestLimits,
    /// Directory of the repetition; made if it is missing. `schedule.jsonl` and `requests.jsonl` in it
    /// must not exist.
    pub out: &'a Path,
    /// Event loops; `None` takes one per core, at most 4.
    pub workers: Option<NonZeroUsize>,
    /// Deliberate flaws.
    pub tuning: Tuning,
}

impl ReplayConfig<'_> {
    pub(super) fn worker_count(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.workers.map_or_else(|| cores().min(MAX_WORKERS), NonZeroUsize::get)
    }
}
