//! Rows and what they add up to.

use serde::Serialize;

use super::Facts;
use crate::capture::tcx::Method;

/// Schema of the JSON report.
pub const SCHEMA: &str = "goodput.doctor/2";

/// What a row says; the worst of all rows is the exit code's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Ok,
    /// Could not be found out.
    Unknown,
    /// The agent runs, and something of what it says is limited or costs more.
    Warn,
    /// The agent would refuse to run, or see nothing.
    Fail,
}

impl State {
    /// As the table shows it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its name, stable: `capability.CAP_BPF`.
    pub check: String,
    /// What came of it.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to do about it; only where something is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

impl Row {
    /// As it should be.
    #[must_use]
    pub fn ok(check: impl Into<String>, found: impl Into<String>) -> Self {
        Self { check: check.into(), state: State::Ok, found: found.into(), mend: None }
    }

    /// Anything else, which always has a mend.
    #[must_use]
    pub fn bad(
        state: State,
        check: impl Into<String>,
        found: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self { check: check.into(), state, found: found.into(), mend: Some(mend.into()) }
    }
}

/// Everything that was looked at; keys are written in this order (`docs/agent.md`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    schema: &'static str,
    version: &'static str,
    kernel: String,
    source: Option<Method>,
    ready: bool,
    /// In the order in which they matter.
    pub rows: Vec<Row>,
}

impl Report {
    pub(super) fn new(facts: &Facts, source: Option<Method>, rows: Vec<Row>) -> Self {
        let ready = rows.iter().all(|row| row.state != State::Fail);
        let (version, kernel) = (env!("CARGO_PKG_VERSION"), facts.release.clone());
        Self { schema: SCHEMA, version, kernel, source, ready, rows }
    }

    /// The agent would run and see what it is asked to.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// The worst of all rows.
    #[must_use]
    pub fn worst(&self) -> State {
        self.rows.iter().map(|row| row.state).max().unwrap_or(State::Ok)
    }

    /// Rows in a state.
    #[must_use]
    pub fn count(&self, state: State) -> usize {
        self.rows.iter().filter(|row| row.state == state).count()
    }
}
