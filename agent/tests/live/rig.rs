//! An engine over the kernel programs and the kernel's lists of sockets, driven by the test.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use agent::capture::tcx::{Method, TcxConfig, TcxSource};
use agent::clock::{Clock, Monotonic};
use agent::endpoint::{Endpoint, Role};
use agent::flow::FlowLimits;
use agent::inflight::GaugeRow;
use agent::sockdiag::NetlinkTables;
use agent::window::Closing;
use agent::worker::{Command, Ending, Engine, EngineConfig, Opening, SocketWatch};
use protocol::Nanos;
use tokio::sync::oneshot::{Sender, channel};

/// The host's clock, which the test can set forward, so that what happens every second need not be
/// waited for.
#[derive(Default)]
struct Jumping(AtomicU64);

impl Clock for Jumping {
    fn now(&self) -> Nanos {
        Nanos::new(Monotonic.now().get() + self.0.load(Ordering::SeqCst))
    }
}

pub(crate) struct Rig {
    engine: Engine,
    clock: Arc<Jumping>,
}

/// The tracepoint is the same however packets are looked at: one method is enough.
pub(crate) fn config(endpoint: SocketAddr) -> TcxConfig {
    crate::support::config(endpoint, Method::Tcx)
}

impl Rig {
    pub(crate) fn over(config: &TcxConfig) -> Self {
        let source = TcxSource::open(config).unwrap();
        let tables = NetlinkTables::open(&config.endpoints).unwrap();
        let clock = Arc::new(Jumping::default());
        let endpoint = |address: &_| Endpoint { address: *address, role: Role::Backend };
        let engine = EngineConfig {
            endpoints: config.endpoints.iter().map(endpoint).collect(),
            interfaces: BTreeMap::new(),
            interval_ns: 100_000_000,
            limits: FlowLimits::default(),
            jsonl: None,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
        };
        let watch = SocketWatch::new(Some(Box::new(tables)), 300_000_000_000);
        Self { engine: Engine::new(Box::new(source), engine).watching(watch), clock }
    }

    fn ask<T>(&mut self, command: impl FnOnce(Sender<T>) -> Command) -> T {
        let (reply, mut answer) = channel();
        self.engine.serve(command(reply));
        answer.try_recv().unwrap()
    }

    /// Takes what there is.
    pub(crate) fn poll(&mut self) {
        self.engine.poll(Duration::ZERO);
    }

    /// The observations of a window.
    pub(crate) fn rows(&mut self, id: &str) -> Vec<serde_json::Value> {
        let id = id.to_owned();
        let rows = self.ask(|reply| Command::Observations(id, reply)).unwrap();
        rows.iter().map(|row| serde_json::from_str(row).unwrap()).collect()
    }

    /// What is told of the one endpoint.
    pub(crate) fn gauge(&mut self) -> GaugeRow {
        self.ask(Command::Gauges).endpoints.swap_remove(0)
    }

    /// The same, right after a reconciliation.
    pub(crate) fn reconciled(&mut self) -> GaugeRow {
        self.clock.0.fetch_add(1_000_000_000, Ordering::SeqCst);
        self.engine.poll(Duration::ZERO);
        self.gauge()
    }

    /// Reconciles until so many connections are told; the kernel may still be closing some.
    pub(crate) fn wait_for(&mut self, connections: u64) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.gauge().connections != Some(connections) {
            let told = self.reconciled();
            assert!(Instant::now() < deadline, "not {connections} after 20 s: {told:?}");
        }
    }

    pub(crate) fn open(&mut self) -> String {
        self.ask(|reply| Command::Open(Opening::new("live"), reply)).unwrap().window_id
    }

    pub(crate) fn close(&mut self, id: &str) -> Closing {
        self.ask(|reply| Command::Close(Ending::new(id, 0), reply)).unwrap()
    }
}
