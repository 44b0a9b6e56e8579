//! The 1 Hz readiness probe: VIPs and backends must answer 200 while cells run.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock::Clock;
use crate::control::{Call, Control, ControlError};
use crate::records::Versioned as _;
use crate::rundir::{ReadinessRow, TargetKind};

const PERIOD: Duration = Duration::from_secs(1);

/// What is probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadinessTarget {
    /// VIP or backend.
    pub kind: TargetKind,
    /// As named in the campaign.
    pub name: String,
    /// Answers 200 when it serves.
    pub url: String,
    /// Bearer token, for VIPs that ask for one.
    pub token: Option<String>,
}

/// Why readiness could not be watched.
#[derive(Debug, thiserror::Error)]
pub enum ReadinessError {
    /// The file.
    #[error("{0}: cannot write health.jsonl; check the run directory and the space left")]
    File(std::io::Error),
    /// The HTTP client.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The thread.
    #[error("cannot start the readiness thread: {0}; check the limit on threads")]
    Thread(std::io::Error),
    /// It ended by a panic.
    #[error("the readiness thread panicked: a defect, the run is void")]
    Panicked,
}

/// The thread that probes; ends when told, or when dropped.
#[derive(Debug)]
pub struct Readiness {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<(), std::io::Error>>>,
}

impl Readiness {
    /// Starts probing and appends to `path`, which may exist when a run is continued.
    ///
    /// # Errors
    /// [`ReadinessError`].
    pub fn start(
        path: &Path,
        targets: Vec<ReadinessTarget>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ReadinessError> {
        let control = Control::new()?;
        let file = OpenOptions::new().create(true).append(true).open(path);
        let mut file = file.map_err(ReadinessError::File)?;
        let (stop, stopped) = channel();
        let probe_all = move || {
            loop {
                for target in &targets {
                    append(&mut file, &probe(&control, target, clock.as_ref()))?;
                }
                if stopped.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout) {
                    return Ok(());
                }
            }
        };
        let builder = std::thread::Builder::new().name("readiness".to_owned());
        let thread = builder.spawn(probe_all).map_err(ReadinessError::Thread)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Ends the thread after its current round.
    ///
    /// # Errors
    /// [`ReadinessError`] when it could not write.
    pub fn finish(mut self) -> Result<(), ReadinessError> {
        self.stop = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result.map_err(ReadinessError::File),
            Some(Err(_)) => Err(ReadinessError::Panicked),
            None => Ok(()),
        }
    }
}

fn append(file: &mut File, row: &ReadinessRow) -> Result<(), std::io::Error> {
    let mut line = serde_json::to_vec(row)?;
    line.push(b'\n');
    file.write_all(&line)
}

fn probe(control: &Control, target: &ReadinessTarget, clock: &dyn Clock) -> ReadinessRow {
    let answer = control.call(&Call::get(target.url.clone()).with_token(target.token.as_deref()));
    let (status, detail) = match answer {
        Ok(answer) if answer.status == 200 => (Some(200), None),
        Ok(answer) => (Some(answer.status), Some(format!("status {}", answer.status))),
        Err(error) => (None, Some(error.to_string())),
    };
    ReadinessRow {
        schema: ReadinessRow::SCHEMA.to_owned(),
        at_ns: clock.now().get(),
        target: target.name.clone(),
        kind: target.kind,
        ok: status == Some(200),
        status,
        detail,
    }
}
