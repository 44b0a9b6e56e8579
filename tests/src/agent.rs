//! `goodput-agent run` as a process, and its API.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use anyhow::Context as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binaries::binary;
use crate::http;
use crate::jsonl;
use crate::namespace::Namespace;
use crate::process::Process;

/// What an agent watches.
#[derive(Clone, Debug)]
pub struct Watch<'a> {
    /// Names of the interfaces.
    pub interfaces: Vec<&'a str>,
    /// Where its API listens; port 0 takes any free one.
    pub api: &'a str,
    /// Addresses of the virtual services.
    pub vips: Vec<SocketAddr>,
    /// Addresses of the backends.
    pub backends: Vec<SocketAddr>,
}

/// A running agent; dropping it kills it.
pub struct Agent {
    process: Process,
    api: Api,
    _folder: TempDir,
}

/// An agent's HTTP API. For an agent in a network namespace call it from inside
/// ([`Namespace::inside`]).
#[derive(Clone, Debug)]
pub struct Api {
    url: String,
}

/// A closed window.
#[derive(Debug)]
pub struct Window {
    /// The agent's account of it.
    pub account: Value,
    /// Rows of `kernel.jsonl`.
    pub observations: Vec<Value>,
}

impl Watch<'_> {
    /// The configuration file.
    #[must_use]
    pub fn toml(&self) -> String {
        let mut text =
            format!("name = \"e2e\"\ninterfaces = {:?}\napi = {:?}\n", self.interfaces, self.api);
        let vips = self.vips.iter().map(|vip| (vip, "vip"));
        for (address, role) in vips.chain(self.backends.iter().map(|it| (it, "backend"))) {
            // Writing to a string cannot fail.
            let _ = write!(text, "[[endpoints]]\naddress = \"{address}\"\nrole = \"{role}\"\n");
        }
        text
    }
}

impl Agent {
    /// Starts an agent and waits until it is attached.
    ///
    /// # Errors
    /// When it does not get ready.
    pub fn start(watch: &Watch<'_>) -> anyhow::Result<Self> {
        Self::launch(&watch.toml(), Command::new(binary("goodput-agent")?))
    }

    /// Starts an agent with the configuration `file` and waits until it is attached.
    ///
    /// # Errors
    /// When it does not get ready.
    pub fn start_file(file: &str) -> anyhow::Result<Self> {
        Self::launch(file, Command::new(binary("goodput-agent")?))
    }

    /// The same, in a network namespace.
    ///
    /// # Errors
    /// When it does not get ready.
    pub fn start_in(namespace: &Namespace, watch: &Watch<'_>) -> anyhow::Result<Self> {
        Self::launch(&watch.toml(), namespace.command(binary("goodput-agent")?))
    }

    fn launch(file: &str, mut command: Command) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("agent.toml");
        fs::write(&path, file)?;
        command.arg("run").arg("--config").arg(path);
        let (process, ready) = Process::server(command)?;
        let api = ready["api"].as_str().with_context(|| format!("no api in {ready}"))?;
        let api = Api { url: format!("http://{api}") };
        Ok(Self { process, api, _folder: folder })
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Its API.
    #[must_use]
    pub fn api(&self) -> &Api {
        &self.api
    }
}

impl Api {
    /// Base URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Opens a window and returns its id.
    ///
    /// # Errors
    /// When the agent refuses.
    pub fn open(&self, label: &str) -> anyhow::Result<String> {
        let url = format!("{}/v1/windows", self.url);
        let opened = http::post(&url, &json!({ "label": label }))?.json()?;
        Ok(jsonl::text(&opened, "window_id").to_owned())
    }

    /// Closes a window, takes what was seen in it and frees it.
    ///
    /// # Errors
    /// When the agent refuses.
    pub fn close(&self, id: &str) -> anyhow::Result<Window> {
        let url = format!("{}/v1/windows/{id}", self.url);
        let account = http::post(&format!("{url}/close"), &json!({ "drain_ms": 2000 }))?.json()?;
        let observations = jsonl::parse(&http::get(&format!("{url}/observations"))?.body)?;
        http::delete(&url)?;
        Ok(Window { account, observations })
    }

    /// Runs `action` in a window of its own.
    ///
    /// # Errors
    /// When `action` fails or the agent refuses.
    pub fn window<T>(
        &self,
        label: &str,
        action: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<(T, Window)> {
        let id = self.open(label)?;
        let result = action()?;
        Ok((result, self.close(&id)?))
    }
}

impl Window {
    /// The observation of one request on one leg.
    #[must_use]
    pub fn leg(&self, trace_id: &str, leg: &str) -> Option<&Value> {
        self.observations
            .iter()
            .find(|row| jsonl::text(row, "trace_id") == trace_id && jsonl::text(row, "leg") == leg)
    }

    /// Errors unless nothing was lost and every counter reconciles: attempted - failed = consumed.
    ///
    /// # Errors
    /// With the agent's account.
    pub fn ensure_complete(&self) -> anyhow::Result<()> {
        let account = &self.account;
        anyhow::ensure!(account["complete"] == true, "not complete: {account}");
        for class in ["segments", "sockets"] {
            let count = |key| jsonl::number(&account["counters"][class], key);
            let reconciled = count("attempted").zip(count("failed")).map(|(all, lost)| all - lost);
            anyhow::ensure!(
                reconciled.is_some() && reconciled == count("consumed"),
                "{class} do not reconcile: {account}"
            );
        }
        Ok(())
    }
}

/// The kernel's TTFT of an observation, in nanoseconds: request end to first token.
#[must_use]
pub fn ttft_ns(observation: &Value) -> Option<i64> {
    let end = jsonl::number(observation, "request_end_ns")?;
    Some(jsonl::number(observation, "first_token_ns")? - end)
}
