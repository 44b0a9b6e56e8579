//! `goodput`'s side of the agent's HTTP API (docs/agent-api.md).

use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::campaign::AgentKeys;
use crate::control::{Call, Control, ControlError};
use crate::records::{AgentRecord, Versioned, check_lines};
use crate::rundir::{InflightRow, KernelRow, Told};

/// How long an agent waits for requests still in flight when a window closes.
const DRAIN: Duration = Duration::from_millis(200);
/// Reason of a window whose agent stopped answering.
const UNREACHABLE: &str = "agent_unreachable";
/// Reason of a window that the agent did not open: it keeps as many as it can.
const REFUSED: &str = "agent_refused_window";
/// Reason of a window whose rows are not what the agent's API promises.
const BAD_ANSWER: &str = "agent_bad_answer";
/// Reason of a window whose rows found no room in the run directory.
const NOT_WRITTEN: &str = "rows_not_written";
/// A week, the longest lease of a window that agents give.
const LONGEST_LEASE_S: u64 = 604_800;
/// More than an agent keeps of one window.
const MAX_ROWS_BYTES: usize = 1024 * 1024 * 1024;

/// One agent.
#[derive(Debug)]
pub struct Agent<'a> {
    keys: &'a AgentKeys,
    token: Option<String>,
}

/// A window of one agent, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    id: Result<String, &'static str>,
}

/// Where a window's rows are written.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// Observations, as received.
    pub kernel: &'a Path,
    /// In-flight rows, as received.
    pub inflight: &'a Path,
}

impl<'a> Agent<'a> {
    /// The agent of a campaign; `token` is the content of its token file.
    #[must_use]
    pub fn new(keys: &'a AgentKeys, token: Option<String>) -> Self {
        Self { keys, token }
    }

    /// Its name in the campaign.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.keys.name
    }

    /// Asks for its status, to find out before the run whether it answers.
    ///
    /// # Errors
    /// [`ControlError`].
    pub fn status(&self, control: &Control) -> Result<Value, ControlError> {
        control.json(&self.call(Method::GET, "/v1/status", None))
    }

    /// What it knows of the gateway on its host (`goodput.evidence/1`).
    #[must_use]
    pub fn evidence(&self, control: &Control) -> Told {
        match control.json(&self.call(Method::GET, "/v1/evidence", None)) {
            Ok(evidence) => Told::Evidence(evidence),
            Err(error) => Told::Problem(error.to_string()),
        }
    }

    /// Opens a window that the agent keeps for `lease` even if nobody calls about it. An agent that does not answer gives a window without an id: the replay must not
    /// end with it.
    #[must_use]
    pub fn open(&self, control: &Control, label: &str, lease: Duration) -> Window {
        let lease_s = lease.as_secs().clamp(1, LONGEST_LEASE_S);
        let body = json!({ "label": label, "lease_s": lease_s });
        let call = self.call(Method::POST, "/v1/windows", Some(body));
        let id = match control.json(&call) {
            Ok(answer) => text(&answer["window_id"]).ok_or(BAD_ANSWER),
            Err(error) => Err(reason(&error)),
        };
        Window { id }
    }

    /// Closes a window, writes its rows and frees it. Whatever fails makes the account incomplete.
    #[must_use]
    pub fn close(&self, control: &Control, window: &Window, files: Files<'_>) -> AgentRecord {
        let id = match &window.id {
            Ok(id) => id,
            Err(reason) => return self.lost(None, reason),
        };
        let path = format!("/v1/windows/{id}/close");
        let mut call =
            self.call(Method::POST, &path, Some(json!({ "drain_ms": DRAIN.as_millis() })));
        call.patience = DRAIN;
        let account = match control.json(&call) {
            Ok(account) => account,
            Err(error) => return self.lost(Some(id), reason(&error)),
        };
        let mut record = self.record(id, &account);
        let fetched = [
            self.fetch::<KernelRow>(control, id, "observations", files.kernel),
            self.fetch::<InflightRow>(control, id, "inflight", files.inflight),
        ];
        for reason in fetched.into_iter().filter_map(Result::err) {
            record.complete = false;
            record.reasons.push(reason.to_owned());
        }
        // A window that stays gives way once its lease has run out; the rows are already here.
        let _ = control.call(&self.call(Method::DELETE, &format!("/v1/windows/{id}"), None));
        record
    }

    /// Writes down what can be read again; anything else would make the whole run directory unreadable.
    fn fetch<T: DeserializeOwned + Versioned>(
        &self,
        control: &Control,
        id: &str,
        what: &str,
        path: &Path,
    ) -> Result<(), &'static str> {
        let mut call = self.call(Method::GET, &format!("/v1/windows/{id}/{what}"), None);
        call.limit = Some(MAX_ROWS_BYTES);
        let rows = control.expect_ok(&call).map_err(|error| reason(&error))?;
        check_lines::<T>(rows.as_bytes(), path).map_err(|_| BAD_ANSWER)?;
        std::fs::write(path, rows).map_err(|_| NOT_WRITTEN)
    }

    fn record(&self, id: &str, account: &Value) -> AgentRecord {
        let reasons = account["reasons"].as_array().into_iter().flatten();
        let counters = account["counters"].as_object();
        AgentRecord {
            complete: account["complete"].as_bool().unwrap_or(false),
            reasons: reasons.filter_map(text).collect(),
            observations: account["observations"].as_u64(),
            counters: counters
                .into_iter()
                .flatten()
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            ..self.lost(Some(id), UNREACHABLE)
        }
    }

    fn lost(&self, id: Option<&str>, reason: &str) -> AgentRecord {
        AgentRecord {
            name: self.keys.name.clone(),
            url: self.keys.url.clone(),
            complete: false,
            reasons: vec![reason.to_owned()],
            window_id: id.map(str::to_owned),
            observations: None,
            counters: std::collections::BTreeMap::new(),
        }
    }

    fn call(&self, method: Method, path: &str, body: Option<Value>) -> Call<'_> {
        let url = format!("{}{path}", self.keys.url.trim_end_matches('/'));
        let token = self.token.as_deref();
        Call { method, url, token, body, ..Call::default() }
    }
}

fn reason(error: &ControlError) -> &'static str {
    match error {
        ControlError::Start(_) | ControlError::NoAnswer { .. } => UNREACHABLE,
        ControlError::Status { .. } => REFUSED,
        ControlError::Content { .. } | ControlError::TooLarge { .. } => BAD_ANSWER,
    }
}

/// A string, or a number as a string.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
