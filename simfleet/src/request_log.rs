//! One JSON line per completion request, so that a test can compare the fleet with its model.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::error::FleetError;

/// What a backend knew of one request. Stamps are CLOCK_MONOTONIC nanoseconds of this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// The trace-id of the request's `traceparent`, if it had one.
    pub trace_id: Option<String>,
    /// The backend's name.
    pub backend: String,
    /// When the whole request was read.
    pub arrival_ns: u64,
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Prompt tokens found in the prefix cache; absent when prefill never began.
    pub hit_tokens: Option<u64>,
    /// Nanoseconds in the queue.
    pub queue_ns: Option<u64>,
    /// The model's TTFT in nanoseconds: queue plus prefill.
    pub model_ttft_ns: Option<u64>,
    /// Tokens handed to the socket.
    pub output_tokens: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The fault that was committed, if any.
    pub fault: Option<String>,
}

/// How a request ended at its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole answer was written.
    Finished,
    /// The client left first.
    Cancelled,
    /// A fault took its place.
    Fault,
}

/// Where records go; clones share the file.
#[derive(Clone, Default)]
pub(crate) struct RequestLog(Option<Arc<Mutex<File>>>);

impl RequestLog {
    /// Appends to `path`; nothing is kept without one.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, FleetError> {
        let open = |path: &Path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.map_err(|source| FleetError::Log { path: path.to_owned(), source })
        };
        Ok(Self(path.map(open).transpose()?.map(|f| Arc::new(Mutex::new(f)))))
    }

    /// Appends one line.
    pub(crate) fn append(&self, record: &RequestRecord) {
        let (Some(file), Ok(mut line)) = (&self.0, serde_json::to_vec(record)) else { return };
        line.push(b'\n');
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(e) = file.write_all(&line) {
            tracing::warn!("request log: {e}");
        }
    }
}
