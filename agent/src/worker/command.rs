//! What the API asks the worker.

use std::collections::BTreeSet;
use std::sync::Arc;

use protocol::Nanos;
use serde::Serialize;
use tokio::sync::oneshot::Sender;

use crate::inflight::{Concentration, GaugeRow, InflightRow, RoleSpread};
use crate::window::{Closing, Reason, WindowCounters, WindowError};

/// A window that was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Opened {
    /// Its id.
    pub window_id: String,
    /// When.
    pub opened_ns: Nanos,
}

/// The worker's part of the agent's status.
#[derive(Clone, Debug)]
pub struct Status {
    /// Now.
    pub now: Nanos,
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

/// A question, with the place for its answer.
#[derive(Debug)]
pub enum Command {
    /// The status.
    Status(Sender<Status>),
    /// Opens a window with a label.
    Open(String, Sender<Result<Opened, WindowError>>),
    /// Closes a window, waiting up to so many milliseconds for open requests.
    Close(String, u64, Sender<Result<Closing, WindowError>>),
    /// Lines of `kernel.jsonl`.
    Observations(String, Sender<Result<Vec<Arc<str>>, WindowError>>),
    /// Lines of `inflight.jsonl`.
    Inflight(String, Sender<Result<Vec<InflightRow>, WindowError>>),
    /// Frees a window.
    Delete(String, Sender<Result<(), WindowError>>),
    /// What is in flight now.
    Gauges(Sender<Gauges>),
    /// How a window's requests were spread over backends.
    Concentration(String, Sender<Result<Concentration, WindowError>>),
    /// Drains the source, writes everything out and ends the worker.
    Stop(Sender<()>),
}
