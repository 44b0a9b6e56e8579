//! Counts of connections, kept right: older connections, lost records, and a second witness.

use protocol::Nanos;

use super::Engine;
use crate::inflight::DEFAULT_IDLE_EXPIRY_NS;
use crate::sockdiag::{Detail, NamespaceSockets, SocketTables};
use crate::worker::Gauges;

/// Time between reconciliations.
const EVERY: u64 = 1_000_000_000;

/// How sockets are watched besides the source.
pub struct SocketWatch {
    /// The kernel's lists of sockets; without them nothing is adopted or reconciled.
    pub tables: Option<Box<dyn SocketTables>>,
    /// Nanoseconds of silence after which an estimated connection counts no more.
    pub idle_expiry_ns: u64,
    due: Nanos,
    /// Lost socket records up to which the counts are known to be the kernel's own.
    synchronised: u64,
    /// The last dump failed, and the log says so.
    failed: bool,
}

impl Default for SocketWatch {
    fn default() -> Self {
        Self::new(None, DEFAULT_IDLE_EXPIRY_NS)
    }
}

impl SocketWatch {
    /// Reconciles with `tables`; estimated connections end after `idle_expiry_ns` of silence.
    #[must_use]
    pub fn new(tables: Option<Box<dyn SocketTables>>, idle_expiry_ns: u64) -> Self {
        let due = Nanos::new(0);
        Self { tables, idle_expiry_ns, due, synchronised: 0, failed: false }
    }
}

impl Engine {
    /// Adopts the connections that are older than the source, and reconciles every second from now
    /// on. To be called right after [`Engine::new`].
    #[must_use]
    pub fn watching(mut self, watch: SocketWatch) -> Self {
        self.inflight.set_idle_expiry(watch.idle_expiry_ns);
        self.watch = watch;
        self.adopt();
        self.watch.due = Nanos::new(self.config.clock.now().get().saturating_add(EVERY));
        self
    }

    /// Adopts the older connections of endpoints that the source knows since now.
    pub(super) fn adopt(&mut self) {
        if let Some(dumps) = self.dump() {
            // Every transition from before the end of the dump is in the ring by now.
            self.drain();
            self.inflight.adopt(&dumps);
        }
    }

    fn dump(&mut self) -> Option<Vec<NamespaceSockets>> {
        let result = self.watch.tables.as_mut()?.dump(Detail::Identity);
        let failed = result.is_err();
        if let Err(error) = &result
            && !self.watch.failed
        {
            tracing::error!(%error, "connections can't be reconciled; the next dump may succeed");
        }
        self.watch.failed = failed;
        result.ok()
    }

    /// Compares counts with the kernel's lists, once a second.
    pub(super) fn reconcile_connections(&mut self, now: Nanos) {
        self.inflight.adopt_nothing();
        if now < self.watch.due || self.failure.is_some() {
            return;
        }
        self.watch.due = Nanos::new(now.get().saturating_add(EVERY));
        self.drain();
        self.resynchronise(now);
        let before = self.inflight.marks();
        let Some(dumps) = self.dump() else { return };
        self.drain();
        let now = self.config.clock.now();
        self.resynchronise(now);
        let Ok(counters) = self.source.counters() else { return };
        self.inflight.reconcile(&before, &dumps, counters.sockets.failed, now);
    }

    /// After lost records: sets the counts to the kernel's own gauges, at `now`. While transitions go
    /// on, a gauge may be ahead of its record; only two looks that agree end the resynchronisation.
    pub(super) fn resynchronise(&mut self, now: Nanos) {
        let Ok(counters) = self.source.counters() else { return };
        let lost = counters.sockets.failed;
        if lost == self.watch.synchronised {
            return;
        }
        self.drain();
        let Some(kernel) = self.source.connection_changes() else { return };
        if self.inflight.resynchronise(&kernel, now) == 0 {
            self.watch.synchronised = lost;
        }
    }

    /// What is in flight now, everything taken that the kernel has written.
    pub(super) fn gauges(&mut self) -> Gauges {
        self.drain();
        let at = self.config.clock.now();
        self.resynchronise(at);
        Gauges { at, endpoints: self.inflight.gauges(), concentration: self.inflight.spread() }
    }
}
