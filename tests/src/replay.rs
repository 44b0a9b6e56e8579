//! `goodput replay` as a process.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::binaries::binary;
use crate::jsonl;
use crate::namespace::Namespace;
use crate::process::Process;

/// Far above what any replay of these tests takes.
const LIMIT: Duration = Duration::from_secs(180);

/// One replay.
#[derive(Clone, Copy, Debug)]
pub struct Replay<'a> {
    /// Where requests go.
    pub to: SocketAddr,
    /// Text of the trace.
    pub trace: &'a str,
    /// Requests per second.
    pub rate: f64,
    /// Further arguments.
    pub more: &'a [&'a str],
}

impl Replay<'_> {
    /// Replays to the end and reads the requests.
    ///
    /// # Errors
    /// When the replay fails; the error holds what it said.
    pub fn run(&self, folder: &Path) -> anyhow::Result<Vec<Value>> {
        finish(&mut self.start(folder)?, folder)
    }

    /// The same from within a network namespace.
    ///
    /// # Errors
    /// When the replay fails; the error holds what it said.
    pub fn run_in(&self, namespace: &Namespace, folder: &Path) -> anyhow::Result<Vec<Value>> {
        let command = self.command(namespace.command(binary("goodput")?), folder)?;
        finish(&mut Process::spawn(command)?, folder)
    }

    /// Starts it; its records go to `folder/run`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, folder: &Path) -> anyhow::Result<Process> {
        Process::spawn(self.command(Command::new(binary("goodput")?), folder)?)
    }

    fn command(&self, mut command: Command, folder: &Path) -> anyhow::Result<Command> {
        let trace = folder.join("trace.jsonl");
        fs::write(&trace, self.trace)?;
        command.arg("replay").arg("--trace").arg(trace).arg("--out").arg(folder.join("run"));
        command.args(["--url", &format!("http://{}", self.to), "--rate", &self.rate.to_string()]);
        // Blocks of 512 tokens become those of the simulated engines, which hold 64.
        command.args(["--length-divisor", "8", "--arrivals", "constant"]).args(self.more);
        Ok(command)
    }
}

fn finish(process: &mut Process, folder: &Path) -> anyhow::Result<Vec<Value>> {
    let finished = process.wait(LIMIT)?;
    anyhow::ensure!(
        finished.status.success(),
        "goodput replay: {}\n{}",
        finished.status,
        finished.stderr
    );
    jsonl::read(&folder.join("run/requests.jsonl"))
}
