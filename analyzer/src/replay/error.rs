//! Why a replay could not be done or booked.

use std::io;

use thiserror::Error;

use crate::records::RecordError;

/// A replay that failed as a whole; a request that fails is a record, never this.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// A file of the run directory.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The directory of the repetition.
    #[error("{path}: {cause}: check that the directory can be made and written", path = path.display())]
    Directory {
        /// The directory.
        path: std::path::PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A body or schedule line could not be written as JSON.
    #[error("cannot write JSON")]
    Json(#[from] serde_json::Error),
    /// The event loop itself failed.
    #[error("the event loop failed in {call}: {cause}: check the limits on open files (ulimit -n)")]
    Loop {
        /// The system call.
        call: &'static str,
        /// Why.
        cause: io::Error,
    },
    /// Delivered, single-token and error classes do not add up to the rows of the schedule.
    #[error(
        "{recorded} records for {attempted} scheduled requests ({detail}): a defect, the run is void"
    )]
    Accounting {
        /// Records written.
        recorded: u64,
        /// Rows of the schedule.
        attempted: u64,
        /// Which row broke the books.
        detail: String,
    },
    /// The schedule refers to a row that the trace does not have.
    #[error("the schedule names row {0}, which the trace does not have: build both from one file")]
    Row(usize),
    /// A worker thread ended by a panic.
    #[error("a worker thread panicked: a defect, the run is void")]
    Worker,
}

impl ReplayError {
    pub(super) fn in_call(call: &'static str) -> impl FnOnce(nix::Error) -> Self {
        move |errno| Self::Loop { call, cause: errno.into() }
    }
}
