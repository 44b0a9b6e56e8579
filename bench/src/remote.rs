//! Programs that run beside the bench, and never outlive it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::de::DeserializeOwned;

use crate::load::{Outcome, Plan, Ready};

/// A program stops within this time of SIGTERM, or is killed.
const STOP: Duration = Duration::from_secs(10);

/// A started program; dropping it ends it.
pub(crate) struct Remote {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Remote {
    /// Starts `command` with pipes to its standard input and output.
    pub(crate) fn start(command: &mut Command) -> anyhow::Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot start {name}"))?;
        let out = child.stdout.take().context("standard output is not captured")?;
        Ok(Self { child, out: BufReader::new(out) })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it prints.
    pub(crate) fn line<T: DeserializeOwned>(&mut self) -> anyhow::Result<T> {
        let mut line = String::new();
        self.out.read_line(&mut line)?;
        if line.is_empty() {
            bail!("process {} ended early; its message is above", self.pid());
        }
        serde_json::from_str(&line).with_context(|| line)
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        Ok(kill(Pid::from_raw(i32::try_from(self.pid())?), signal)?)
    }

    /// Asks it to stop and waits.
    pub(crate) fn stop(&mut self) -> anyhow::Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        self.signal(Signal::SIGTERM)?;
        let deadline = Instant::now() + STOP;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                self.child.kill()?;
                self.child.wait()?;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("warning: {error:#}");
        }
    }
}

/// A load that is ready to begin.
pub(crate) struct Load {
    remote: Remote,
    /// Where it serves.
    pub(crate) ready: Ready,
}

impl Load {
    /// Starts a load generator; nothing is sent before [`Load::begin`].
    pub(crate) fn prepare(plan: &Plan) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut remote = Remote::start(command.args(plan.arguments()))?;
        let ready = remote.line()?;
        Ok(Self { remote, ready })
    }

    /// Lets it send.
    pub(crate) fn begin(&mut self) -> anyhow::Result<()> {
        let input = self.remote.child.stdin.as_mut().context("standard input is not captured")?;
        Ok(input.write_all(b"go\n")?)
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> anyhow::Result<Outcome> {
        let outcome = self.remote.line()?;
        self.remote.child.wait()?;
        Ok(outcome)
    }
}
