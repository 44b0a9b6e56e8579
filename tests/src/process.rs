//! Programs that a test starts, with all that they say and a sure end.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long a server may take until it listens, on a loaded host.
const READY_LIMIT: Duration = Duration::from_secs(30);

/// A running program. Dropping it kills it and waits for its end.
pub struct Process {
    name: String,
    child: Child,
    stdout: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
}

/// How a program ended, and what it said.
#[derive(Debug)]
pub struct Finished {
    /// Its exit status.
    pub status: ExitStatus,
    /// The lines of its standard output that were not taken before.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Process {
    /// Starts `command` with both outputs captured.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn spawn(mut command: Command) -> anyhow::Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let mut stderr = child.stderr.take().context("stderr is piped")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            // A receiver that is gone must not stop the reading: the program would block.
            BufReader::new(stdout).lines().map_while(Result::ok).for_each(|line| {
                let _ = sender.send(line);
            });
        });
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Ok(Self { name, child, stdout: lines, stderr: Some(stderr) })
    }

    /// Starts a server and takes its first line: the JSON that says where it listens.
    ///
    /// # Errors
    /// When it ends, or prints something else, before it is ready.
    pub fn server(command: Command) -> anyhow::Result<(Self, serde_json::Value)> {
        let mut process = Self::spawn(command)?;
        let Ok(line) = process.stdout.recv_timeout(READY_LIMIT) else {
            process.kill();
            let finished = process.wait(READY_LIMIT)?;
            bail!("{} did not get ready:\n{}", process.name, finished.stderr);
        };
        let ready = serde_json::from_str(&line)
            .with_context(|| format!("{} printed no JSON line first: {line}", process.name))?;
        Ok((process, ready))
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// When it has ended and been waited for.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        kill(Pid::from_raw(i32::try_from(self.pid())?), signal)
            .with_context(|| format!("cannot send {signal} to {}", self.name))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it still runs after `limit`; it is killed then.
    pub fn wait(&mut self, limit: Duration) -> anyhow::Result<Finished> {
        let deadline = Instant::now() + limit;
        let mut stdout = String::new();
        loop {
            match self.stdout.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => stdout += &(line + "\n"),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.kill();
                    let stderr = self.take_stderr();
                    bail!("{} still ran after {limit:?}:\n{stderr}", self.name);
                }
            }
        }
        let status = self.child.wait()?;
        Ok(Finished { status, stdout, stderr: self.take_stderr() })
    }

    fn take_stderr(&mut self) -> String {
        self.stderr.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }

    fn kill(&mut self) {
        // Fails only when it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let stderr = self.take_stderr();
            eprintln!("--- {} said ---\n{stderr}", self.name);
        }
    }
}

/// Runs `command` to its end, at most `limit` long.
///
/// # Errors
/// When it cannot be started, or runs longer.
pub fn run(command: Command, limit: Duration) -> anyhow::Result<Finished> {
    Process::spawn(command)?.wait(limit)
}

/// Runs `command`, which must succeed.
///
/// # Errors
/// When it cannot be started or fails; the error holds what it said.
pub fn check(command: Command) -> anyhow::Result<String> {
    let display = format!("{command:?}");
    let finished = run(command, Duration::from_secs(60))?;
    if !finished.status.success() {
        bail!("{display}: {}\n{}", finished.status, finished.stderr);
    }
    Ok(finished.stdout)
}
