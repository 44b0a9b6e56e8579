//! What the API asks the worker.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;

use protocol::Nanos;
use serde::Serialize;
use tokio::sync::oneshot::Sender;

use crate::capture::CaptureError;
use crate::endpoint::Endpoint;
use crate::inflight::{Concentration, GaugeRow, InflightRow, RoleSpread};
use crate::metrics::Tick;
use crate::prompt::Salt;
use crate::window::{Closing, Lease, Reason, WindowCounters, WindowError};

/// A window to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// What its user calls it.
    pub label: String,
    /// How long it is kept without a call about it.
    pub lease: Lease,
    /// Prefixes of prompts are hashed and keyed with this secret.
    pub prefix_salt: Option<Salt>,
}

impl Opening {
    /// A window that is kept for as long as most are.
    #[must_use]
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), lease: Lease::OPEN, prefix_salt: None }
    }
}

/// A window to be closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Its id.
    pub id: String,
    /// Milliseconds to wait at most for open requests.
    pub drain_ms: u64,
    /// How long it is kept then without a call about it.
    pub lease: Lease,
}

impl Ending {
    /// The end of a window that is kept for as long as most are.
    #[must_use]
    pub fn new(id: impl Into<String>, drain_ms: u64) -> Self {
        Self { id: id.into(), drain_ms, lease: Lease::CLOSED }
    }
}

/// A window that was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Opened {
    /// Its id.
    pub window_id: String,
    /// When.
    pub opened_ns: Nanos,
    /// How long it is kept without a call about it, in seconds.
    pub lease_s: u64,
}

/// The worker's part of the agent's status.
#[derive(Clone, Debug)]
pub struct Status {
    /// Now.
    pub now: Nanos,
    /// Endpoints watched.
    pub endpoints: Vec<Endpoint>,
    /// Since the agent started.
    pub counters: WindowCounters,
    /// Why not everything was seen since the agent started.
    pub reasons: BTreeSet<Reason>,
}

/// What is in flight at one moment.
#[derive(Clone, Debug)]
pub struct Gauges {
    /// The moment.
    pub at: Nanos,
    /// Each endpoint.
    pub endpoints: Vec<GaugeRow>,
    /// Spread of requests over each role's backends.
    pub concentration: Vec<RoleSpread>,
}

/// What pairing the legs of a window needs.
#[derive(Clone, Debug)]
pub struct WindowLegs {
    /// Lines of `kernel.jsonl`.
    pub rows: Vec<Arc<str>>,
    /// Endpoints watched.
    pub endpoints: Vec<Endpoint>,
    /// The window is closed, and nothing is missing in it.
    pub complete: bool,
}

/// What may change while the worker runs; what is `None` stays.
#[derive(Default)]
pub struct Change {
    /// Endpoints watched.
    pub endpoints: Option<Vec<Endpoint>>,
    /// Length of an interval of `inflight.jsonl`, in nanoseconds, for windows opened from now on.
    pub interval_ns: Option<u64>,
    /// Where every observation goes besides the windows; `Some(None)` is nowhere.
    pub jsonl: Option<Option<Box<dyn Write + Send>>>,
}

impl std::fmt::Debug for Change {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Change")
            .field("endpoints", &self.endpoints)
            .field("interval_ns", &self.interval_ns)
            .field("jsonl", &self.jsonl.as_ref().map(Option::is_some))
            .finish()
    }
}

/// A question, with the place for its answer.
#[derive(Debug)]
pub enum Command {
    /// The status.
    Status(Sender<Status>),
    /// Opens a window.
    Open(Opening, Sender<Result<Opened, WindowError>>),
    /// Closes a window.
    Close(Ending, Sender<Result<Closing, WindowError>>),
    /// Lines of `kernel.jsonl`.
    Observations(String, Sender<Result<Vec<Arc<str>>, WindowError>>),
    /// What pairing the legs of a window needs.
    Legs(String, Sender<Result<WindowLegs, WindowError>>),
    /// Lines of `prefixes.jsonl`.
    Prefixes(String, Sender<Result<Vec<Arc<str>>, WindowError>>),
    /// Lines of `inflight.jsonl`.
    Inflight(String, Sender<Result<Vec<InflightRow>, WindowError>>),
    /// Frees a window.
    Delete(String, Sender<Result<(), WindowError>>),
    /// What is in flight now.
    Gauges(Sender<Gauges>),
    /// How a window's requests were spread over backends.
    Concentration(String, Sender<Result<Concentration, WindowError>>),
    /// Everything counted, at one instant.
    Metrics(Sender<Box<Tick>>),
    /// Whether the worker answers.
    Ping(Sender<()>),
    /// Changes what may change while it runs.
    Reconfigure(Change, Sender<Result<(), CaptureError>>),
    /// Drains the source, writes everything out and ends the worker.
    Stop(Sender<()>),
}
