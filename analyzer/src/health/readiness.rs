//! The 1 Hz readiness probe: VIPs and backends must answer 200 while cells run.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
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

/// The threads that probe; they end when told, or when this is dropped.
#[derive(Debug)]
pub struct Readiness {
    probing: Vec<Probing>,
}

/// One target's thread, and what ends it when dropped.
#[derive(Debug)]
struct Probing {
    stop: Sender<()>,
    thread: JoinHandle<Result<(), std::io::Error>>,
}

impl Readiness {
    /// Starts probing and appends to `path`, which may exist when a run is continued. Each target has its
    /// own thread: one that answers late must not thin out the probes of the others.
    ///
    /// # Errors
    /// [`ReadinessError`].
    pub fn start(
        path: &Path,
        targets: Vec<ReadinessTarget>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, ReadinessError> {
        let file = open(path).map_err(ReadinessError::File)?;
        let mut probing = Vec::new();
        for target in targets {
            let file = file.try_clone().map_err(ReadinessError::File)?;
            probing.push(watch(target, file, Arc::clone(clock))?);
        }
        Ok(Self { probing })
    }

    /// Ends the threads after their current probe.
    ///
    /// # Errors
    /// [`ReadinessError`] when one could not write.
    pub fn finish(self) -> Result<(), ReadinessError> {
        let (stop, threads): (Vec<_>, Vec<_>) =
            self.probing.into_iter().map(|it| (it.stop, it.thread)).unzip();
        drop(stop);
        for thread in threads {
            let result = thread.join().map_err(|_| ReadinessError::Panicked)?;
            result.map_err(ReadinessError::File)?;
        }
        Ok(())
    }
}

fn watch(
    target: ReadinessTarget,
    mut file: File,
    clock: Arc<dyn Clock>,
) -> Result<Probing, ReadinessError> {
    let control = Control::new()?;
    let (stop, stopped) = channel();
    let repeat = move || {
        loop {
            append(&mut file, &probe(&control, &target, clock.as_ref()))?;
            if stopped.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout) {
                return Ok(());
            }
        }
    };
    let builder = std::thread::Builder::new().name("readiness".to_owned());
    let thread = builder.spawn(repeat).map_err(ReadinessError::Thread)?;
    Ok(Probing { stop, thread })
}

/// Opens for appending behind the last whole line: what a killed run left of a line is no record, and
/// would spoil the next one.
fn open(path: &Path) -> Result<File, std::io::Error> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    file.set_len(whole as u64)?;
    Ok(file)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_a_killed_run_left_unfinished_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("health.jsonl");
        std::fs::write(&path, "{\"whole\":1}\n{\"torn").unwrap();
        open(&path).unwrap().write_all(b"{\"next\":1}\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"whole\":1}\n{\"next\":1}\n");
    }

    #[test]
    fn every_target_is_probed_whatever_the_others_do() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let target = |address: std::net::SocketAddr| ReadinessTarget {
            kind: TargetKind::Backend,
            name: address.to_string(),
            url: format!("http://{address}/v1/models"),
            token: None,
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("health.jsonl");
        // The silent one comes first and answers nothing until the client's patience ends.
        let targets = vec![target(silent.local_addr().unwrap()), target(closed)];
        let clock: Arc<dyn Clock> = Arc::new(crate::clock::SystemClock);
        let readiness = Readiness::start(&path, targets, &clock).unwrap();
        let rows = || {
            let text = std::fs::read_to_string(&path).unwrap();
            text.lines().filter(|line| line.contains(&closed.to_string())).count()
        };
        while rows() < 2 {
            std::thread::yield_now();
        }
        let all = std::fs::read_to_string(&path).unwrap();
        assert!(!all.contains(&silent.local_addr().unwrap().to_string()), "{all}");
        readiness.finish().unwrap();
    }
}
