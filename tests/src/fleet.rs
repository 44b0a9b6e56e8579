//! A simulated fleet in a process of its own.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;
use tempfile::TempDir;

use crate::binaries::binary;
use crate::jsonl;
use crate::namespace::Namespace;
use crate::process::Process;

/// A running fleet; dropping it ends it.
pub struct Fleet {
    _process: Process,
    ready: Value,
    folder: TempDir,
}

impl Fleet {
    /// Starts the fleet that the TOML text `file` describes, with a request log.
    ///
    /// # Errors
    /// When it does not get ready.
    pub fn start(file: &str) -> anyhow::Result<Self> {
        Self::launch(file, Command::new(binary("simfleet")?))
    }

    /// The same, in a network namespace.
    ///
    /// # Errors
    /// When it does not get ready.
    pub fn start_in(namespace: &Namespace, file: &str) -> anyhow::Result<Self> {
        Self::launch(file, namespace.command(binary("simfleet")?))
    }

    fn launch(file: &str, mut command: Command) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("fleet.toml");
        fs::write(&path, format!("request_log = {:?}\n{file}", folder.path().join("log.jsonl")))?;
        command.arg("run").arg(path);
        let (process, ready) = Process::server(command)?;
        Ok(Self { _process: process, ready, folder })
    }

    /// Where clients of the gateway called `name` connect.
    ///
    /// # Errors
    /// When no gateway has that name.
    pub fn vip(&self, name: &str) -> anyhow::Result<SocketAddr> {
        self.address("gateways", name, "vip")
    }

    /// Where the control plane of the gateway called `name` listens.
    ///
    /// # Errors
    /// When no gateway has that name.
    pub fn rest(&self, name: &str) -> anyhow::Result<SocketAddr> {
        self.address("gateways", name, "rest")
    }

    /// Where the backend called `name` listens.
    ///
    /// # Errors
    /// When no backend has that name.
    pub fn backend(&self, name: &str) -> anyhow::Result<SocketAddr> {
        self.address("backends", name, "addr")
    }

    /// Names and addresses of all backends.
    ///
    /// # Errors
    /// When the ready line lacks them.
    pub fn backends(&self) -> anyhow::Result<Vec<(String, SocketAddr)>> {
        let rows = self.ready["backends"].as_array().context("backends of the ready line")?;
        rows.iter()
            .map(|row| Ok((jsonl::text(row, "name").to_owned(), jsonl::text(row, "addr").parse()?)))
            .collect()
    }

    /// What the backends logged, in order of the requests' ends.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log(&self) -> anyhow::Result<Vec<Value>> {
        jsonl::read(&self.folder.path().join("log.jsonl"))
    }

    fn address(&self, kind: &str, name: &str, key: &str) -> anyhow::Result<SocketAddr> {
        let rows = self.ready[kind].as_array().map(Vec::as_slice).unwrap_or_default();
        let row = rows.iter().find(|row| jsonl::text(row, "name") == name);
        let row = row.with_context(|| format!("{kind}: none is called {name}"))?;
        Ok(jsonl::text(row, key).parse()?)
    }
}
