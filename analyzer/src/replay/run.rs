//! A whole repetition: writes the schedule, runs the event loops, writes records as requests end.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Barrier, OnceLock};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use protocol::Nanos;

use super::client::StampKeeper;
use super::config::ReplayConfig;
use super::connection::Instruments;
use super::error::ReplayError;
use super::ledger::Ledger;
use super::progress::ProgressSink;
use super::source::{Builder, Source};
use super::summary::{Facts, RunSummary, Tally};
use super::wire::Head;
use super::worker::{Shared, Worker};
use crate::clock::{Clock, RealtimeMap};
use crate::records::{LineWriter, RequestRecord, ScheduleRecord, schedule_lines, schedule_sha256};

/// Between the last preparation and the first instant of the window.
const LEAD_NS: u64 = 20_000_000;
const TICK: Duration = Duration::from_millis(100);
const REFRESH_NS: i64 = 1_000_000_000;

/// Replays one repetition and blocks until its last request has ended, or `stop` was set and
/// everything left is booked as cancelled. Writes `schedule.jsonl`, then sends, and appends each request
/// to `requests.jsonl` as it ends. `run.json` is the caller's to write, from the summary.
///
/// # Errors
/// Every [`ReplayError`]. What was written before stays.
pub fn run(
    config: &ReplayConfig<'_>,
    clock: &dyn Clock,
    stop: &AtomicBool,
    progress: &mut dyn ProgressSink,
) -> Result<RunSummary, ReplayError> {
    let schedule_sha256 = write_schedule(config)?;
    let writer = LineWriter::create(&config.out.join("requests.jsonl"))?;
    let _keeper = StampKeeper::open();
    let realtime = RealtimeMap::new(clock);
    let (connections, oversized) = (AtomicU64::new(0), AtomicU64::new(0));
    let halt = AtomicBool::new(false);
    let shared = Shared {
        address: config.target.address(),
        limits: config.limits,
        instruments: Instruments { clock, realtime: &realtime, tuning: config.tuning },
        stop: &halt,
        connections: &connections,
        oversized: &oversized,
        reuse: config.connections,
    };
    let supervisor = Supervisor { config, clock, realtime: &realtime, stop, halt: &halt };
    let booked = supervisor.supervise(shared, writer, progress)?;
    let classes = booked.ledger.close()?;
    let facts = Facts {
        schedule_sha256,
        start: booked.start,
        connections: connections.load(Ordering::Relaxed),
        clock_steps: realtime.steps(),
        interrupted: stop.load(Ordering::Relaxed),
        oversized_bodies: oversized.load(Ordering::Relaxed),
    };
    Ok(booked.tally.finish(config, facts, classes))
}

/// Writes `schedule.jsonl` and gives its hash.
fn write_schedule(config: &ReplayConfig<'_>) -> Result<String, ReplayError> {
    let out = config.out;
    std::fs::create_dir_all(out)
        .map_err(|cause| ReplayError::Directory { path: out.to_owned(), cause })?;
    write_new(&out.join("schedule.jsonl"), &schedule_lines(config.schedule)?)?;
    Ok(schedule_sha256(config.schedule.requests().iter().map(ScheduleRecord::from))?)
}

fn write_new(path: &Path, bytes: &[u8]) -> Result<(), ReplayError> {
    use std::io::Write as _;
    let mut file = std::fs::File::create_new(path)
        .map_err(|cause| ReplayError::Directory { path: path.to_owned(), cause })?;
    file.write_all(bytes)
        .and_then(|()| file.sync_data())
        .map_err(|cause| ReplayError::Directory { path: path.to_owned(), cause })
}

/// Where the workers meet before the window opens.
struct Gate {
    built: Barrier,
    opened: Barrier,
    start: OnceLock<Nanos>,
}

struct Booked {
    ledger: Ledger,
    tally: Tally,
    start: Nanos,
}

struct Supervisor<'a> {
    config: &'a ReplayConfig<'a>,
    clock: &'a dyn Clock,
    realtime: &'a RealtimeMap,
    stop: &'a AtomicBool,
    /// Stops the workers: follows `stop`, and is set when one of them fails.
    halt: &'a AtomicBool,
}

type Handles<'scope> = Vec<ScopedJoinHandle<'scope, Result<(), ReplayError>>>;

impl<'a> Supervisor<'a> {
    fn supervise(
        &self,
        shared: Shared<'a>,
        writer: LineWriter<RequestRecord>,
        progress: &mut dyn ProgressSink,
    ) -> Result<Booked, ReplayError> {
        let workers = self.config.worker_count();
        let gate = Gate {
            built: Barrier::new(workers + 1),
            opened: Barrier::new(workers + 1),
            start: OnceLock::new(),
        };
        std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            let handles = self.spawn(scope, workers, &gate, shared, &sender);
            drop(sender);
            gate.built.wait();
            let start = Nanos::new(self.clock.now().get() + LEAD_NS);
            let start = *gate.start.get_or_init(|| start);
            gate.opened.wait();
            let booked = self.book(&receiver, writer, progress, start);
            if booked.is_err() {
                self.halt.store(true, Ordering::Relaxed);
            }
            join(handles)?;
            booked
        })
    }

    fn spawn<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        workers: usize,
        gate: &'scope Gate,
        shared: Shared<'a>,
        sender: &Sender<RequestRecord>,
    ) -> Handles<'scope>
    where
        'a: 'scope,
    {
        let config = self.config;
        let builder = Builder {
            head: Head { target: config.target, bearer: config.bearer },
            trace: config.trace,
            options: config.body,
            salt: config.salt,
        };
        let halt = self.halt;
        (0..workers)
            .map(|first| {
                let requests = config.schedule.requests();
                let source = Source::share(builder, requests, first, workers);
                let sender = sender.clone();
                scope.spawn(move || {
                    let result = work(shared, source, gate, &sender);
                    if result.is_err() {
                        halt.store(true, Ordering::Relaxed);
                    }
                    result
                })
            })
            .collect()
    }

    /// Writes records until every worker has hung up.
    fn book(
        &self,
        receiver: &Receiver<RequestRecord>,
        mut writer: LineWriter<RequestRecord>,
        progress: &mut dyn ProgressSink,
        start: Nanos,
    ) -> Result<Booked, ReplayError> {
        let mut ledger = Ledger::new(self.config.schedule.requests().len());
        let mut tally = Tally::default();
        let mut refreshed = start;
        loop {
            if self.stop.load(Ordering::Relaxed) {
                self.halt.store(true, Ordering::Relaxed);
            }
            let now = self.clock.now();
            if now.since(refreshed) >= REFRESH_NS {
                self.realtime.refresh(self.clock);
                refreshed = now;
            }
            match receiver.recv_timeout(TICK) {
                Ok(record) => {
                    writer.append(&record)?;
                    ledger.book(&record)?;
                    tally.add(&record);
                    progress.ended(&record);
                }
                Err(RecvTimeoutError::Timeout) => progress.tick(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        writer.sync()?;
        Ok(Booked { ledger, tally, start })
    }
}

fn work<'a>(
    shared: Shared<'a>,
    source: Source<'a>,
    gate: &Gate,
    sender: &Sender<RequestRecord>,
) -> Result<(), ReplayError> {
    let prepared = Worker::new(shared, source).and_then(|mut worker| {
        worker.build_ahead()?;
        Ok(worker)
    });
    // A worker that failed still comes to both barriers: the others wait there.
    gate.built.wait();
    gate.opened.wait();
    let mut worker = prepared?;
    worker.start_at(gate.start.get().copied().unwrap_or(Nanos::new(0)));
    // The receiver outlives the workers, except when booking failed and the run is void anyway.
    worker.run(&mut |record| drop(sender.send(record)))
}

fn join(handles: Handles<'_>) -> Result<(), ReplayError> {
    handles
        .into_iter()
        .map(|handle| handle.join().unwrap_or(Err(ReplayError::Worker)))
        .fold(Ok(()), Result::and)
}
