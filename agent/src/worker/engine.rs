//! Records in, observations and windows out; no thread, no socket.

mod connections;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use protocol::Nanos;
use tokio::sync::oneshot::Sender;

pub use connections::SocketWatch;

use super::command::{Command, Ending, Opened, Opening, Status};
use crate::capture::{CaptureError, CaptureEvent};
use crate::clock::Clock;
use crate::endpoint::{Endpoint, Role};
use crate::flow::{FlowEvent, FlowLimits, FlowTable};
use crate::inflight::Inflight;
use crate::legs::{LegRow, Tally};
use crate::metrics::Book;
use crate::observation::{KernelRow, Observation};
use crate::source::LiveSource;
use crate::window::{
    Closing, Lease, Reason, Snapshot, WindowCounters, WindowError, Windows, reasons,
};

mod leases;
mod prompts;
mod surface;

/// Attempts at a moment at which nothing is on its way from the kernel.
const SNAPSHOT_ATTEMPTS: usize = 50;
/// Milliseconds that a close may wait at most.
const MAX_DRAIN_MS: u64 = 600_000;

/// What an engine is made of.
pub struct EngineConfig {
    /// Endpoints watched.
    pub endpoints: Vec<Endpoint>,
    /// Names of interfaces by index.
    pub interfaces: BTreeMap<u32, String>,
    /// Length of an interval of `inflight.jsonl`, in nanoseconds.
    pub interval_ns: u64,
    /// Bounds of flows.
    pub limits: FlowLimits,
    /// Where every observation goes besides the windows.
    pub jsonl: Option<Box<dyn Write + Send>>,
    /// The clock of the source's stamps.
    pub clock: Arc<dyn Clock>,
}

/// A window whose requests are waited for.
struct Draining {
    key: u64,
    until: Nanos,
    lease: Lease,
    reply: Sender<Result<Closing, WindowError>>,
}

/// Flows, gauges and windows over one source.
pub struct Engine {
    source: Box<dyn LiveSource>,
    failure: Option<String>,
    flows: FlowTable,
    inflight: Inflight,
    windows: Windows,
    draining: Vec<Draining>,
    roles: BTreeMap<std::net::SocketAddr, Role>,
    metrics: Book,
    tally: Tally,
    ticks: u64,
    jsonl_errors: u64,
    base: Snapshot,
    watch: SocketWatch,
    request_bytes: prompts::RequestBytes,
    config: EngineConfig,
}

impl Engine {
    /// An engine over `source`; counts from now.
    #[must_use]
    pub fn new(source: Box<dyn LiveSource>, config: EngineConfig) -> Self {
        let addresses = config.endpoints.iter().map(|endpoint| endpoint.address);
        let mut engine = Self {
            source,
            failure: None,
            flows: FlowTable::new(addresses, config.limits),
            inflight: Inflight::new(&config.endpoints, config.interval_ns),
            windows: Windows::default(),
            draining: Vec::new(),
            roles: config.endpoints.iter().map(|it| (it.address, it.role)).collect(),
            metrics: Book::new(&config.endpoints),
            tally: Tally::new(&config.endpoints),
            ticks: 0,
            jsonl_errors: 0,
            base: Snapshot::default(),
            watch: SocketWatch::default(),
            request_bytes: prompts::RequestBytes::default(),
            config,
        };
        engine.base = engine.snapshot();
        engine
    }

    /// Takes what the source has, waiting at most `timeout` for the first record.
    pub fn poll(&mut self, timeout: Duration) {
        if self.failure.is_some() {
            // A broken source must not turn the loop into a busy one.
            std::thread::sleep(timeout);
        } else {
            self.take(|source, sink| source.poll(timeout, sink));
        }
        let now = self.config.clock.now();
        self.flows.settle(now);
        self.book();
        self.inflight.settle(now);
        self.tally.settle(now);
        self.reconcile_connections(now);
        self.flush();
        self.finish_drained(now);
        self.expire_windows(now);
        self.follow_prompts(self.windows.reads_prompts());
    }

    fn take(
        &mut self,
        call: impl FnOnce(
            &mut dyn LiveSource,
            &mut dyn FnMut(CaptureEvent<'_>),
        ) -> Result<usize, CaptureError>,
    ) {
        let Self { source, flows, inflight, .. } = self;
        let result = call(source.as_mut(), &mut |event| match event {
            CaptureEvent::Segment(segment) => {
                flows.take(&segment);
                inflight.segment(&segment);
            }
            CaptureEvent::Socket(transition) => inflight.socket(&transition),
            CaptureEvent::Retransmit(report) => flows.retransmit(&report),
        });
        if let Err(error) = result {
            tracing::error!(%error, "the source failed: nothing is seen any more");
            self.failure = Some(error.to_string());
        }
        self.book();
    }

    fn drain(&mut self) {
        if self.failure.is_none() {
            self.take(|source, sink| source.drain(sink));
        }
    }

    /// Books what the flows have told.
    fn book(&mut self) {
        for event in self.flows.take_events() {
            self.inflight.flow(&event);
            if let FlowEvent::Finished(exchange) = event {
                let name = self.config.interfaces.get(&exchange.ifindex);
                let interface = name.cloned().unwrap_or_else(|| exchange.ifindex.to_string());
                let role = self.roles.get(&exchange.endpoint).copied().unwrap_or(Role::Backend);
                self.observe(&Observation { role, interface, exchange: *exchange });
            }
        }
    }

    fn observe(&mut self, observation: &Observation) {
        self.metrics.observe(observation);
        self.tally.add(LegRow::new(observation), self.config.clock.now());
        let row = match serde_json::to_string(&KernelRow::new(observation)) {
            Ok(row) => row,
            Err(error) => {
                tracing::error!(%error, "an observation could not be written");
                return;
            }
        };
        self.write(&row);
        self.windows.add(observation.exchange.seen, &Arc::from(row));
        self.windows.add_prefixes(&observation.exchange);
    }

    fn write(&mut self, row: &str) {
        let Some(file) = &mut self.config.jsonl else { return };
        if let Err(error) = writeln!(file, "{row}") {
            self.give_up_jsonl(&error);
        }
    }

    fn flush(&mut self) {
        if let Some(file) = &mut self.config.jsonl
            && let Err(error) = file.flush()
        {
            self.give_up_jsonl(&error);
        }
    }

    fn give_up_jsonl(&mut self, error: &std::io::Error) {
        tracing::error!(%error, "the JSONL file can't be written: no more lines go there until a reload");
        self.jsonl_errors += 1;
        self.config.jsonl = None;
    }

    /// Drains the source until attempted minus failed is consumed: while packets arrive, records can
    /// be written between draining and counting.
    fn snapshot(&mut self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for _ in 0..SNAPSHOT_ATTEMPTS {
            self.drain();
            let counts = self
                .source
                .counters()
                .and_then(|capture| self.source.preempted().map(|preempted| (capture, preempted)));
            let Ok((capture, preempted)) = counts else {
                self.failure.get_or_insert_with(|| "counters can't be read".to_owned());
                break;
            };
            snapshot = Snapshot {
                capture,
                flows: self.flows.stats(),
                preempted,
                lost_interfaces: self.source.lost_interfaces(),
                missed_transitions: self.source.missed_transitions(),
                missed_retransmits: self.source.missed_retransmits(),
                connection_corrections: self.inflight.corrections(),
                connection_resynchronisations: self.inflight.resynchronisations(),
            };
            let reconciled = [capture.segments, capture.sockets]
                .iter()
                .all(|class| class.attempted.wrapping_sub(class.failed) == class.consumed);
            if reconciled || self.failure.is_some() {
                break;
            }
        }
        snapshot
    }

    /// Answers a command.
    pub fn serve(&mut self, command: Command) {
        // Whoever asked may have gone: then nobody misses the answer.
        match command {
            Command::Status(reply) => drop(reply.send(self.status())),
            Command::Open(opening, reply) => drop(reply.send(self.open(opening))),
            Command::Close(ending, reply) => self.begin_close(&ending, reply),
            Command::Observations(id, reply) => {
                let rows = self.window(&id).map(|key| self.windows.get(key));
                drop(reply.send(rows.map(|it| it.map(|it| it.rows()).unwrap_or_default())));
            }
            Command::Legs(id, reply) => drop(reply.send(self.legs(&id))),
            Command::Prefixes(id, reply) => {
                drop(reply.send(self.window(&id).and_then(|key| self.windows.prefixes(key))));
            }
            Command::Inflight(id, reply) => {
                drop(reply.send(self.window(&id).map(|key| self.inflight.rows(key))));
            }
            Command::Delete(id, reply) => drop(reply.send(self.delete(&id))),
            Command::Gauges(reply) => drop(reply.send(self.gauges())),
            Command::Concentration(id, reply) => {
                let key = self.window(&id);
                drop(reply.send(key.map(|key| self.inflight.concentration(key, id))));
            }
            Command::Metrics(reply) => drop(reply.send(Box::new(self.tick()))),
            // Left unanswered, the watchdog has an agent restarted that sees nothing any more.
            Command::Ping(reply) if self.failure.is_some() => drop(reply),
            Command::Ping(reply) => drop(reply.send(())),
            Command::Reconfigure(change, reply) => drop(reply.send(self.reconfigure(change))),
            Command::Stop(reply) => {
                self.stop();
                let _ = reply.send(());
            }
        }
    }

    fn status(&mut self) -> Status {
        let now = self.snapshot();
        let counters = WindowCounters::between(&self.base, &now);
        let mut reasons = reasons(&counters);
        reasons.extend(self.also());
        Status {
            now: self.config.clock.now(),
            endpoints: self.config.endpoints.clone(),
            counters,
            reasons,
        }
    }

    fn also(&self) -> Option<Reason> {
        self.failure.is_some().then_some(Reason::SourceFailed)
    }

    fn open(&mut self, opening: Opening) -> Result<Opened, WindowError> {
        let Opening { label, lease, prefix_salt } = opening;
        self.expire_windows(self.config.clock.now());
        self.windows.check_room()?;
        if prefix_salt.is_some() {
            self.follow_prompts(true);
        }
        let base = self.snapshot();
        let opened_ns = self.config.clock.now();
        self.resynchronise(opened_ns);
        let (key, window_id) = self.windows.open(label, opened_ns, base)?;
        self.windows.set_lease(key, lease, opened_ns);
        if let Some(salt) = prefix_salt {
            self.windows.hash_prompts(key, salt);
        }
        self.inflight.open(key, opened_ns);
        Ok(Opened { window_id, opened_ns, lease_s: lease.seconds() })
    }

    fn begin_close(
        &mut self,
        &Ending { ref id, drain_ms, lease }: &Ending,
        reply: Sender<Result<Closing, WindowError>>,
    ) {
        let now = self.config.clock.now();
        let ended = self.window(id).and_then(|key| {
            self.windows.set_end(key, now)?;
            self.inflight.bound(key, now);
            Ok(key)
        });
        match ended {
            Err(error) => drop(reply.send(Err(error))),
            Ok(key) => {
                let wait = drain_ms.min(MAX_DRAIN_MS) * 1_000_000;
                let until = Nanos::new(now.get().saturating_add(wait));
                self.draining.push(Draining { key, until, lease, reply });
                // What was written before the call may hold requests that are still to be waited for.
                self.drain();
                self.resynchronise(now);
                self.finish_drained(now);
            }
        }
    }

    /// Closes the windows that have nothing to wait for any more.
    fn finish_drained(&mut self, now: Nanos) {
        for draining in std::mem::take(&mut self.draining) {
            if self.open_in(draining.key) > 0 && now < draining.until && self.failure.is_none() {
                self.draining.push(draining);
            } else {
                let closing = self.close(draining.key);
                self.windows.set_lease(draining.key, draining.lease, now);
                drop(draining.reply.send(closing));
            }
        }
    }

    /// Requests of a window that are still in flight.
    fn open_in(&self, key: u64) -> usize {
        let Some(window) = self.windows.get(key) else { return 0 };
        self.flows.open_requests().filter(|seen| window.covers(*seen)).count()
    }

    fn close(&mut self, key: u64) -> Result<Closing, WindowError> {
        self.drain();
        self.flows.flush();
        // Clients that sent their FIN have left; there is no more time to see whether they read on.
        if self.open_in(key) > 0 {
            self.flows.give_up_left();
        }
        self.book();
        let snapshot = self.snapshot();
        let open = self.open_in(key);
        if let Some(end) = self.windows.get(key).and_then(|window| window.closed) {
            self.inflight.close(key, end);
        }
        let limited = self.inflight.overflowed(key).then_some(Reason::MemoryLimit);
        let also: BTreeSet<Reason> = self.also().into_iter().chain(limited).collect();
        self.flush();
        self.windows.close(key, &snapshot, open, also)
    }

    fn delete(&mut self, id: &str) -> Result<(), WindowError> {
        let key = self.window(id)?;
        let (gone, kept) =
            std::mem::take(&mut self.draining).into_iter().partition(|it| it.key == key);
        self.draining = kept;
        for draining in Vec::from_iter::<Vec<Draining>>(gone) {
            drop(draining.reply.send(Err(WindowError::Unknown)));
        }
        self.inflight.forget(key);
        self.windows.delete(key)
    }

    /// Takes out what the kernel wrote, hands over what is complete, and writes everything out.
    pub fn stop(&mut self) {
        self.drain();
        self.flows.flush();
        self.book();
        self.flush();
        for draining in std::mem::take(&mut self.draining) {
            drop(draining.reply.send(Err(WindowError::Stopping)));
        }
    }
}
