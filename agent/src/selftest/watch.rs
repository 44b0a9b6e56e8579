//! The agent itself, driven by the self-test's thread instead of a worker's.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::oneshot::{Sender, channel};

use crate::capture::tcx::{InterfaceRef, TcxConfig, TcxSource};
use crate::clock::Monotonic;
use crate::config::{DEFAULT_INTERVAL_MS, SourceKind};
use crate::endpoint::{Endpoint, Role};
use crate::flow::FlowLimits;
use crate::selftest::SelftestError;
use crate::source::LiveSource;
use crate::window::Closing;
use crate::worker::{Command, Ending, Engine, EngineConfig, Opening};

const POLL: Duration = Duration::from_millis(5);
/// Milliseconds for which the window waits for open requests.
const DRAIN_MS: u64 = 5_000;

/// Connections and requests in flight.
pub(super) type Gauges = (usize, usize);

/// An engine over a live source on `lo`, with one window.
pub(super) struct Watch {
    engine: Engine,
    window: String,
    source: &'static str,
}

fn open_source(
    kind: SourceKind,
    endpoints: &[SocketAddr],
) -> Result<Box<dyn LiveSource>, SelftestError> {
    let lo = InterfaceRef::Name("lo".to_owned());
    let config =
        TcxConfig { method: kind.method(), ..TcxConfig::new(vec![lo], endpoints.to_vec()) };
    Ok(Box::new(TcxSource::open(&config)?))
}

impl Watch {
    /// Attaches to `lo` and opens a window.
    pub(super) fn open(kind: SourceKind, endpoints: &[SocketAddr]) -> Result<Self, SelftestError> {
        let source = open_source(kind, endpoints)?;
        let name = source.name();
        let endpoint = |address: &SocketAddr| Endpoint { address: *address, role: Role::Backend };
        let config = EngineConfig {
            endpoints: endpoints.iter().map(endpoint).collect(),
            interfaces: std::collections::BTreeMap::new(),
            interval_ns: DEFAULT_INTERVAL_MS * 1_000_000,
            limits: FlowLimits::default(),
            jsonl: None,
            clock: Arc::new(Monotonic),
        };
        let mut watch =
            Self { engine: Engine::new(source, config), window: String::new(), source: name };
        let opened = watch.ask(|reply| Command::Open(Opening::new("selftest"), reply));
        watch.window = opened.and_then(Result::ok).map(|it| it.window_id).unwrap_or_default();
        Ok(watch)
    }

    /// Name of the source that watches.
    pub(super) fn source(&self) -> &'static str {
        self.source
    }

    /// Takes what has come.
    pub(super) fn poll(&mut self) {
        self.engine.poll(POLL);
    }

    fn ask<T>(&mut self, command: impl FnOnce(Sender<T>) -> Command) -> Option<T> {
        let (reply, mut answer) = channel();
        self.engine.serve(command(reply));
        let deadline = Instant::now() + super::PATIENCE;
        loop {
            match answer.try_recv() {
                Ok(answer) => return Some(answer),
                Err(_) if Instant::now() > deadline => return None,
                Err(_) => self.poll(),
            }
        }
    }

    fn gauges(&mut self) -> Gauges {
        let rows = self.ask(Command::Gauges).map(|it| it.endpoints).unwrap_or_default();
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        rows.iter().fold((0, 0), |(connections, requests), row| {
            (connections + count(row.connections.unwrap_or(0)), requests + count(row.requests))
        })
    }

    /// Polls until the gauges are as wanted; answers what they were at last.
    pub(super) fn poll_until(
        &mut self,
        patience: Duration,
        wanted: impl Fn(Gauges) -> bool,
    ) -> Gauges {
        let deadline = Instant::now() + patience;
        loop {
            self.poll();
            let gauges = self.gauges();
            if wanted(gauges) || Instant::now() > deadline {
                return gauges;
            }
        }
    }

    /// Closes the window.
    pub(super) fn close(&mut self) -> Option<Closing> {
        let id = self.window.clone();
        self.ask(|reply| Command::Close(Ending::new(id, DRAIN_MS), reply)).and_then(Result::ok)
    }

    /// The rows that were exported, as whoever reads `kernel.jsonl` gets them.
    pub(super) fn rows(&mut self) -> Vec<Value> {
        let id = self.window.clone();
        let rows = self.ask(|reply| Command::Observations(id, reply)).and_then(Result::ok);
        rows.unwrap_or_default().iter().filter_map(|row| serde_json::from_str(row).ok()).collect()
    }
}
