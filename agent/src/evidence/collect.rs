//! Everything at one instant: once while the agent is privileged, and again whenever it is asked for.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use protocol::Nanos;
use serde::Serialize;

use super::SCHEMA;
use super::fact::{Fact, Unknown};
use super::pins::{self, PinFolder};
use super::process::{Environment, Proc, Process};
use super::sockets::{Held, Listener};
use crate::capture::foreign::{self, ForeignProgram};
use crate::clock::Clock;

/// What is looked at.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// Name of LoxiLB's process.
    pub process: String,
    /// Interfaces watched: name and index.
    pub interfaces: Vec<(String, u32)>,
}

/// Programs of others on one interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InterfacePrograms {
    interface: String,
    programs: Vec<ForeignProgram>,
}

/// What is known of one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessEvidence {
    #[serde(flatten)]
    process: Process,
    environment: Fact<Environment>,
    listening: Fact<Vec<Listener>>,
    #[serde(skip)]
    held: Option<BTreeSet<u64>>,
}

/// Everything that is known. Keys are written in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    schema: &'static str,
    at_ns: Nanos,
    process_name: String,
    processes: Fact<Vec<ProcessEvidence>>,
    pinned: Fact<Vec<PinFolder>>,
    sockmap_acceleration: Fact<bool>,
    foreign_programs: Fact<Vec<InterfacePrograms>>,
}

/// Reads the evidence, and keeps what only the start's privileges could read.
pub struct Collector {
    proc: Proc,
    subject: Subject,
    clock: Arc<dyn Clock>,
    start: Option<Evidence>,
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Collector").field("subject", &self.subject).finish_non_exhaustive()
    }
}

impl Collector {
    /// Reads everything for the first time: call it after attaching and before privileges are dropped.
    #[must_use]
    pub fn new(subject: Subject, clock: Arc<dyn Clock>) -> Self {
        Self::over(Proc::default(), subject, clock)
    }

    /// The same over another `/proc`.
    #[must_use]
    pub fn over(proc: Proc, subject: Subject, clock: Arc<dyn Clock>) -> Self {
        let mut collector = Self { proc, subject, clock, start: None };
        collector.start = Some(collector.read());
        collector
    }

    /// Everything as it is now; where only the start's privileges could read it, as it was then.
    #[must_use]
    pub fn read(&self) -> Evidence {
        let at = self.clock.now();
        let start = self.start.as_ref();
        let found = self.proc.called(&self.subject.process);
        let processes = found.map(|all| {
            all.into_iter().map(|process| self.process(process, at)).collect::<Vec<_>>()
        });
        let pinned = Fact::of(at, self.pinned(processes.as_deref().unwrap_or_default()));
        let pinned = pinned.or(start.map(|it| &it.pinned));
        let sockmap = match &pinned {
            Fact::Known { at_ns, value } => Fact::of(*at_ns, pins::sockmap(value)),
            Fact::Unknown { at_ns, why, mend } => {
                Fact::of(*at_ns, Err(Unknown::new(why.clone(), mend.clone())))
            }
        };
        let foreign = Fact::of(at, self.foreign()).or(start.map(|it| &it.foreign_programs));
        Evidence {
            schema: SCHEMA,
            at_ns: at,
            process_name: self.subject.process.clone(),
            processes: Fact::of(at, processes),
            pinned,
            sockmap_acceleration: sockmap,
            foreign_programs: foreign,
        }
    }

    fn process(&self, process: Process, at: Nanos) -> ProcessEvidence {
        let before = self.before(process);
        let environment = Fact::of(at, self.proc.environment(process.pid));
        let now = self.proc.held(process.pid).ok();
        let earlier = || before.and_then(|it| it.held.clone());
        let held = now
            .clone()
            .map(|inodes| Held { inodes, current: true })
            .or_else(|| Some(Held { inodes: earlier()?, current: false }));
        ProcessEvidence {
            process,
            environment: environment.or(before.map(|it| &it.environment)),
            listening: Fact::of(at, self.proc.listeners(process.pid, held.as_ref())),
            held: now.or_else(earlier),
        }
    }

    /// The same process at the start; another one may have its id by now.
    fn before(&self, process: Process) -> Option<&ProcessEvidence> {
        let all = self.start.as_ref()?.processes.value()?;
        let same = |it: &&ProcessEvidence| {
            it.process.pid == process.pid
                && it.process.started_boottime_ns == process.started_boottime_ns
        };
        all.iter().find(same)
    }

    /// Folders of the host, and of the processes' own mounts where those can be read.
    fn pinned(&self, processes: &[ProcessEvidence]) -> Result<Vec<PinFolder>, Unknown> {
        let mut folders = Vec::new();
        for folder in pins::FOLDERS {
            folders.extend(pins::list(Path::new("/"), folder, None)?);
        }
        for process in processes {
            let pid = process.process.pid;
            let root = self.proc.path(pid, "root");
            for folder in pins::FOLDERS {
                folders.extend(pins::list(&root, folder, Some(pid))?);
            }
        }
        Ok(folders)
    }

    fn foreign(&self) -> Result<Vec<InterfacePrograms>, Unknown> {
        let of = |(name, index): &(String, u32)| {
            let programs = foreign::list(*index).map_err(|error| {
                let error = error.to_string();
                let (why, mend) = error.split_once("; ").unwrap_or((&error, "ask again"));
                Unknown::new(why, mend)
            })?;
            Ok(InterfacePrograms { interface: name.clone(), programs })
        };
        self.subject.interfaces.iter().map(of).collect()
    }
}
