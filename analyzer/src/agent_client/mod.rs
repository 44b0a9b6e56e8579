//! `goodput`'s side of the agent's HTTP API (docs/agent-api.md).

use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::campaign::AgentKeys;
use crate::control::{Call, Control, ControlError};
use crate::records::AgentRecord;

/// How long an agent waits for requests still in flight when a window closes.
const DRAIN: Duration = Duration::from_millis(200);
/// Reason of a window whose agent stopped answering.
const UNREACHABLE: &str = "agent_unreachable";

/// One agent.
#[derive(Debug)]
pub struct Agent<'a> {
    keys: &'a AgentKeys,
    token: Option<String>,
}

/// A window of one agent; `None` when it could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    id: Option<String>,
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

    /// Opens a window. An agent that does not answer gives a window without an id: the replay must not
    /// end with it.
    #[must_use]
    pub fn open(&self, control: &Control, label: &str) -> Window {
        let call = self.call(Method::POST, "/v1/windows", Some(json!({ "label": label })));
        let answer = control.json(&call).ok();
        Window { id: answer.and_then(|answer| text(&answer["window_id"])) }
    }

    /// Closes a window, writes its rows and frees it. Whatever fails makes the account incomplete.
    #[must_use]
    pub fn close(&self, control: &Control, window: &Window, files: Files<'_>) -> AgentRecord {
        let Some(id) = &window.id else { return self.lost(None) };
        let path = format!("/v1/windows/{id}/close");
        let mut call =
            self.call(Method::POST, &path, Some(json!({ "drain_ms": DRAIN.as_millis() })));
        call.patience = DRAIN;
        let Ok(account) = control.json(&call) else { return self.lost(Some(id)) };
        let mut record = self.record(id, &account);
        for (what, path) in [("observations", files.kernel), ("inflight", files.inflight)] {
            if self.fetch(control, id, what, path).is_err() {
                record.complete = false;
                record.reasons.push(UNREACHABLE.to_owned());
            }
        }
        // A window that stays is freed by the agent's own limit; the rows are already here.
        let _ = control.call(&self.call(Method::DELETE, &format!("/v1/windows/{id}"), None));
        record
    }

    fn fetch(
        &self,
        control: &Control,
        id: &str,
        what: &str,
        path: &Path,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let rows = control.expect_ok(&self.call(
            Method::GET,
            &format!("/v1/windows/{id}/{what}"),
            None,
        ))?;
        Ok(std::fs::write(path, rows)?)
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
            ..self.lost(Some(id))
        }
    }

    fn lost(&self, id: Option<&str>) -> AgentRecord {
        AgentRecord {
            name: self.keys.name.clone(),
            url: self.keys.url.clone(),
            complete: false,
            reasons: vec![UNREACHABLE.to_owned()],
            window_id: id.map(str::to_owned),
            observations: None,
            counters: std::collections::BTreeMap::new(),
        }
    }

    fn call(&self, method: Method, path: &str, body: Option<Value>) -> Call<'_> {
        let url = format!("{}{path}", self.keys.url.trim_end_matches('/'));
        let token = self.token.as_deref();
        Call { method, url, token, body, patience: Duration::ZERO }
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
