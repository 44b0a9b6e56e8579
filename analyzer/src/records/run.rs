//! `run.json`: what one repetition offered, achieved and lost.

use std::collections::BTreeMap;
use std::path::Path;

use crate::replay::Connections;
use protocol::Nanos;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lines::{RecordError, Versioned, parse_line};

/// What one agent said about the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// Its name.
    pub name: String,
    /// Its API.
    pub url: String,
    /// It lost nothing.
    pub complete: bool,
    /// Coded reasons when it did.
    pub reasons: Vec<String>,
    /// The window's id at the agent; `None` when none could be opened.
    pub window_id: Option<String>,
    /// Requests it saw.
    pub observations: Option<u64>,
    /// Its counters over the window, as received.
    pub counters: BTreeMap<String, Value>,
}

/// One repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// Arm.
    pub arm: String,
    /// Offered rate as configured.
    pub rate_rps: f64,
    /// Repetition; 0 is the warm-up.
    pub repetition: u32,
    /// Hash of the schedule without its trace ids.
    pub schedule_sha256: String,
    /// Salt; `None` when prompts went out unsalted.
    pub salt: Option<String>,
    /// Start of the window: the instant that offsets count from.
    pub window_start_ns: Nanos,
    /// When the last request ended.
    pub window_end_ns: Nanos,
    /// Requests divided by rate.
    pub schedule_length_ns: u64,
    /// Rows of the schedule.
    pub attempted: u64,
    /// Rows whose connection was begun.
    pub dispatched: u64,
    /// Attempted per second of schedule.
    pub offered_rps: f64,
    /// Dispatched per second that dispatching took: the schedule plus the lag of its last request.
    pub achieved_rps: f64,
    /// Median of dispatched - planned (nearest rank); `None` when nothing was dispatched.
    pub lag_p50_ns: Option<i64>,
    /// 99th percentile of it.
    pub lag_p99_ns: Option<i64>,
    /// Largest.
    pub lag_max_ns: Option<i64>,
    /// Whether they were used again.
    #[serde(default)]
    pub connection_mode: Connections,
    /// Connections opened.
    pub connections: u64,
    /// Requests whose first token's stamp may be that of later bytes.
    pub coalesced_reads: u64,
    /// Requests with at least one read without a kernel stamp.
    pub stamp_fallbacks: u64,
    /// Steps of CLOCK_REALTIME.
    pub clock_steps: u64,
    /// Stopped by a signal.
    pub interrupted: bool,
    /// Bodies that gateways stop inspecting before their end.
    pub oversized_bodies: u64,
    /// Squared coefficient of variation of the planned gaps.
    pub burstiness: Option<f64>,
    /// Per agent.
    pub agents: Vec<AgentRecord>,
}

impl Versioned for RunRecord {
    const SCHEMA: &'static str = "goodput.run/1";
}

impl RunRecord {
    /// Writes the file whole or not at all.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn write(&self, path: &Path) -> Result<(), RecordError> {
        let json = |cause| RecordError::Json { path: path.to_owned(), line: 0, cause };
        let mut bytes = serde_json::to_vec_pretty(self).map_err(json)?;
        bytes.push(b'\n');
        let partial = path.with_extension("json.partial");
        std::fs::write(&partial, &bytes).map_err(|cause| RecordError::io(&partial, cause))?;
        std::fs::rename(&partial, path).map_err(|cause| RecordError::io(path, cause))
    }

    /// Reads the file.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let bytes = std::fs::read(path).map_err(|cause| RecordError::io(path, cause))?;
        parse_line(&bytes, path, 1)
    }
}
