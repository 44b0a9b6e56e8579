//! What the engine tells of itself, and what may change while it runs.

use super::{Engine, WindowCounters, reasons};
use crate::capture::CaptureError;
use crate::endpoint::Endpoint;
use crate::metrics::Tick;
use crate::window::WindowError;
use crate::worker::{Change, WindowLegs};

impl Engine {
    /// Everything counted, at an instant at which the source was drained.
    pub(super) fn tick(&mut self) -> Tick {
        let now = self.snapshot();
        self.book();
        self.ticks += 1;
        let counters = WindowCounters::between(&self.base, &now);
        let mut found = reasons(&counters);
        found.extend(self.also());
        Tick {
            number: self.ticks,
            at: self.config.clock.now(),
            counters,
            reasons: found,
            gauges: self.inflight.gauges(),
            book: self.metrics.clone(),
            legs: self.tally.counts().clone(),
            windows: self.windows.len(),
            windows_expired: self.windows.expired(),
            flows: self.flows.connections(),
            // A counter that can't be read is told by `source_failed`.
            interfaces: self.source.interface_counts().unwrap_or_default(),
            jsonl_errors: self.jsonl_errors,
        }
    }

    /// Rows of a window with what their legs are judged by.
    pub(super) fn legs(&mut self, id: &str) -> Result<WindowLegs, WindowError> {
        let key = self.window(id)?;
        let window = self.windows.get(key).ok_or(WindowError::Unknown)?;
        let endpoints = self.config.endpoints.clone();
        Ok(WindowLegs { rows: window.rows(), endpoints, complete: window.complete })
    }

    /// The source comes first: when it refuses, nothing has changed.
    pub(super) fn reconfigure(&mut self, change: Change) -> Result<(), CaptureError> {
        if let Some(endpoints) = change.endpoints {
            self.set_endpoints(endpoints)?;
        }
        if let Some(interval_ns) = change.interval_ns {
            self.inflight.set_interval(interval_ns);
        }
        if let Some(jsonl) = change.jsonl {
            self.flush();
            self.config.jsonl = jsonl;
        }
        Ok(())
    }

    fn set_endpoints(&mut self, endpoints: Vec<Endpoint>) -> Result<(), CaptureError> {
        let addresses: Vec<_> = endpoints.iter().map(|endpoint| endpoint.address).collect();
        self.drain();
        self.source.set_endpoints(&addresses)?;
        if let Some(tables) = &mut self.watch.tables {
            tables.set_endpoints(&addresses);
        }
        self.flows.set_endpoints(addresses);
        self.book();
        self.inflight.set_endpoints(&endpoints);
        self.metrics.set_endpoints(&endpoints);
        self.tally.set_endpoints(&endpoints);
        self.windows.endpoints_changed();
        self.roles = endpoints.iter().map(|it| (it.address, it.role)).collect();
        self.config.endpoints = endpoints;
        self.adopt();
        Ok(())
    }
}
