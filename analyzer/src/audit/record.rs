//! Records a window of live traffic from one agent or several.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::folder::{FolderError, write_file};
use super::rows::{
    Account, AgentPart, AuditFile, ConcentrationRow, EndpointPart, Files, PREFIX_SIZES, PrefixRow,
    RequestRow, State,
};
use super::salt::Salt;
use crate::control::{Call, Control, ControlError};
use crate::records::{Versioned, check_lines};
use crate::rundir::{InflightRow, from_json};

/// How long an agent waits for requests in flight when the window closes.
const DRAIN: Duration = Duration::from_secs(2);
/// An agent keeps the window for so long beyond its planned end.
const LEASE_BEYOND: Duration = Duration::from_secs(600);
/// The longest lease that agents give, seconds.
const LONGEST_LEASE_S: u64 = 604_800;
/// How often the waiting looks up.
const TICK: Duration = Duration::from_millis(100);
/// More than an agent keeps of one window.
const MAX_ROWS_BYTES: usize = 1024 * 1024 * 1024;
/// The agent stopped answering.
const UNREACHABLE: &str = "agent_unreachable";
/// It refused a call that it should have served.
const REFUSED: &str = "agent_refused_window";
/// Its answer is not what its API promises.
const BAD_ANSWER: &str = "agent_bad_answer";
/// Rows found no room in the folder.
const NOT_WRITTEN: &str = "rows_not_written";

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// An agent did not open a window.
    #[error(
        "{0}; see that the agent runs, is of this version, and that --agent and --token-file are right"
    )]
    Agent(#[from] ControlError),
    /// An agent answered something else.
    #[error("{url}: not the answer of an agent; is this the right URL?")]
    NoAgent {
        /// Its URL.
        url: String,
    },
    /// The folder can't be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// An agent to record from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Base URL of its API.
    pub url: String,
    /// Content of its token file.
    pub token: Option<String>,
}

/// What is to be recorded.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// From where.
    pub targets: &'a [Target],
    /// For how long.
    pub length: Duration,
    /// What hashes are keyed with.
    pub salt: &'a Salt,
    /// Where it goes: a folder that exists and is empty.
    pub folder: &'a Path,
}

/// Looks on while time passes.
pub trait Patience {
    /// So much of the window has passed.
    fn passed(&mut self, elapsed: Duration);
}

struct Recorder<'a> {
    control: Control,
    plan: &'a Plan<'a>,
    windows: Vec<String>,
    file: AuditFile,
}

/// Records until the time is over or `stop` is set. What an agent fails to deliver afterwards is a
/// coded problem of its part, not an error.
///
/// # Errors
/// [`RecordError`] when an agent does not open a window, or the folder can't be written.
pub fn record(
    plan: &Plan<'_>,
    stop: &AtomicBool,
    patience: &mut dyn Patience,
) -> Result<(), RecordError> {
    let mut recorder = Recorder::new(plan)?;
    if let Err(error) = recorder.open_all() {
        recorder.give_up();
        return Err(error);
    }
    write_file(plan.folder, &recorder.file)?;
    let state = wait(plan.length, stop, patience);
    recorder.close_all();
    recorder.file.state = state;
    write_file(plan.folder, &recorder.file)?;
    Ok(())
}

fn wait(length: Duration, stop: &AtomicBool, patience: &mut dyn Patience) -> State {
    let start = Instant::now();
    while start.elapsed() < length {
        if stop.load(Ordering::Relaxed) {
            return State::Interrupted;
        }
        patience.passed(start.elapsed());
        std::thread::sleep(TICK.min(length.saturating_sub(start.elapsed())));
    }
    State::Complete
}

impl<'a> Recorder<'a> {
    fn new(plan: &'a Plan<'a>) -> Result<Self, RecordError> {
        let file = AuditFile {
            schema: AuditFile::SCHEMA.to_owned(),
            state: State::Recording,
            asked_ns: u64::try_from(plan.length.as_nanos()).unwrap_or(u64::MAX),
            prefix_sizes: PREFIX_SIZES.to_vec(),
            agents: Vec::new(),
        };
        Ok(Self { control: Control::new()?, plan, windows: Vec::new(), file })
    }

    fn open_all(&mut self) -> Result<(), RecordError> {
        let several = self.plan.targets.len() > 1;
        let mut first: Option<Instant> = None;
        for (index, target) in self.plan.targets.iter().enumerate() {
            let mut part = self.status(target)?;
            part.files = Files::new(several.then_some(index + 1));
            let asked = Instant::now();
            let id = self.open(target)?;
            // The window was opened between asking and the answer.
            let opened = asked + asked.elapsed() / 2;
            let after = opened.duration_since(*first.get_or_insert(opened));
            part.opened_after_ns = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
            self.windows.push(id);
            self.file.agents.push(part);
        }
        Ok(())
    }

    fn status(&self, target: &Target) -> Result<AgentPart, RecordError> {
        let status = self.control.json(&call(target, Method::GET, "/v1/status", None))?;
        let text = |key: &str| status[key].as_str().map(str::to_owned);
        let endpoints = serde_json::from_value::<Vec<EndpointPart>>(status["endpoints"].clone());
        let part = || {
            Some(AgentPart {
                name: text("name")?,
                url: Some(target.url.clone()),
                version: text("version")?,
                kernel: text("kernel")?,
                source: text("source")?,
                endpoints: endpoints.ok()?,
                opened_after_ns: 0,
                account: None,
                problems: Vec::new(),
                files: Files::new(None),
            })
        };
        part().ok_or_else(|| RecordError::NoAgent { url: target.url.clone() })
    }

    fn open(&self, target: &Target) -> Result<String, RecordError> {
        let lease_s = (self.plan.length + LEASE_BEYOND).as_secs().min(LONGEST_LEASE_S);
        let body = json!({
            "label": "audit",
            "lease_s": lease_s,
            "prefix_salt": self.plan.salt.expose(),
        });
        let answer = self.control.json(&call(target, Method::POST, "/v1/windows", Some(body)))?;
        let id = answer["window_id"].as_str().map(str::to_owned);
        id.ok_or_else(|| RecordError::NoAgent { url: target.url.clone() })
    }

    /// Frees the windows that were opened before one was refused.
    fn give_up(&self) {
        for (target, id) in self.plan.targets.iter().zip(&self.windows) {
            self.free(target, id);
        }
    }

    fn free(&self, target: &Target, id: &str) {
        // A window that stays gives way once its lease has run out.
        let path = format!("/v1/windows/{id}");
        let _ = self.control.call(&call(target, Method::DELETE, &path, None));
    }

    /// Closes all windows first, so that they end together.
    fn close_all(&mut self) {
        let targets = self.plan.targets;
        for (index, target) in targets.iter().enumerate() {
            let closed = self.close(target, &self.windows[index]);
            let part = &mut self.file.agents[index];
            match closed {
                Ok(account) => part.account = Some(account),
                Err(problem) => part.problems.push(problem.to_owned()),
            }
        }
        for (index, target) in targets.iter().enumerate() {
            if self.file.agents[index].account.is_some() {
                let problems = self.fetch_all(target, &self.windows[index], index);
                self.file.agents[index].problems.extend(problems);
                self.free(target, &self.windows[index]);
            }
        }
    }

    fn close(&self, target: &Target, id: &str) -> Result<Account, &'static str> {
        let body = json!({ "drain_ms": DRAIN.as_millis() });
        let mut close = call(target, Method::POST, &format!("/v1/windows/{id}/close"), Some(body));
        close.patience = DRAIN;
        let account = self.control.json(&close).map_err(|error| problem(&error))?;
        serde_json::from_value(account).map_err(|_| BAD_ANSWER)
    }

    fn fetch_all(&self, target: &Target, id: &str, index: usize) -> Vec<String> {
        let files = &self.file.agents[index].files;
        let fetch = |what: &str, name: &str, check: Check| {
            let path = self.plan.folder.join(name);
            let mut get = call(target, Method::GET, &format!("/v1/windows/{id}/{what}"), None);
            get.limit = Some(MAX_ROWS_BYTES);
            let text = self.control.expect_ok(&get).map_err(|error| problem(&error))?;
            if !check(text.as_bytes(), &path) {
                return Err(BAD_ANSWER);
            }
            std::fs::write(&path, text).map_err(|_| NOT_WRITTEN)
        };
        let fetched = [
            fetch("observations", &files.kernel, is_rows::<RequestRow>),
            fetch("inflight", &files.inflight, is_rows::<InflightRow>),
            fetch("prefixes", &files.prefixes, is_rows::<PrefixRow>),
            fetch("concentration", &files.concentration, is_concentration),
        ];
        fetched.into_iter().filter_map(Result::err).map(str::to_owned).collect()
    }
}

/// Whether an answer can be read again from the folder.
type Check = fn(&[u8], &Path) -> bool;

fn is_rows<T: DeserializeOwned + Versioned>(bytes: &[u8], path: &Path) -> bool {
    check_lines::<T>(bytes, path).is_ok() && (bytes.is_empty() || bytes.ends_with(b"\n"))
}

fn is_concentration(bytes: &[u8], path: &Path) -> bool {
    from_json::<ConcentrationRow>(bytes, path).is_ok()
}

fn call<'a>(target: &'a Target, method: Method, path: &str, body: Option<Value>) -> Call<'a> {
    let url = format!("{}{path}", target.url.trim_end_matches('/'));
    Call { method, url, token: target.token.as_deref(), body, ..Call::default() }
}

fn problem(error: &ControlError) -> &'static str {
    match error {
        ControlError::Start(_) | ControlError::NoAnswer { .. } => UNREACHABLE,
        ControlError::Status { .. } => REFUSED,
        ControlError::Content { .. } | ControlError::TooLarge { .. } => BAD_ANSWER,
    }
}
