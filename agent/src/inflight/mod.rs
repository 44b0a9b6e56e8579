//! Connections and requests in flight per endpoint: now, and per interval of a window.

mod interval;
mod row;
mod series;
mod sockets;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use protocol::Nanos;

pub use interval::{Interval, Intervals};
pub use row::{GAUGES_SCHEMA, GaugeRow, INFLIGHT_SCHEMA, InflightRow};
pub use sockets::gauge_change;

use crate::capture::SocketTransition;
use crate::endpoint::{Endpoint, Role};
use crate::flow::FlowEvent;
use series::Series;

/// Stamps of one host's CPUs reach user space within this time of each other; what comes later is
/// booked at the end of it.
const SETTLE: u64 = 1_000_000_000;

/// Where a count of connections comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionSource {
    /// The kernel's sockets: exact, for sockets of this host.
    Tracepoint,
    /// SYN, FIN and RST: an estimate, since peers vanish and packets are retried.
    Packets,
}

/// Number of a window.
pub type WindowKey = u64;

#[derive(Debug)]
struct Watched {
    role: Role,
    sockets: Series,
    packets: Series,
    requests: Series,
    /// A transition was seen: sockets are local, and exact.
    local: bool,
}

impl Watched {
    fn all(&mut self) -> [&mut Series; 3] {
        [&mut self.sockets, &mut self.packets, &mut self.requests]
    }

    fn source(&self) -> ConnectionSource {
        if self.local { ConnectionSource::Tracepoint } else { ConnectionSource::Packets }
    }

    fn connections(&self) -> &Series {
        if self.local { &self.sockets } else { &self.packets }
    }
}

/// What is in flight at every endpoint.
#[derive(Debug)]
pub struct Inflight {
    endpoints: BTreeMap<SocketAddr, Watched>,
    interval_ns: u64,
}

impl Inflight {
    /// Nothing is in flight; windows are divided into intervals of `interval_ns` nanoseconds.
    #[must_use]
    pub fn new(endpoints: &[Endpoint], interval_ns: u64) -> Self {
        let watched = |endpoint: &Endpoint| {
            let watched = Watched {
                role: endpoint.role,
                sockets: Series::default(),
                packets: Series::default(),
                requests: Series::default(),
                local: false,
            };
            (endpoint.address, watched)
        };
        Self { endpoints: endpoints.iter().map(watched).collect(), interval_ns }
    }

    /// Books a change of a socket's state.
    pub fn socket(&mut self, transition: &SocketTransition) {
        if !transition.at_endpoint {
            return;
        }
        let Some(watched) = self.endpoints.get_mut(&transition.local) else { return };
        watched.local = true;
        if let Some(change) = gauge_change(transition.old_state, transition.new_state) {
            watched.sockets.change(transition.stamp, change);
        }
    }

    /// Books what happened on a flow.
    pub fn flow(&mut self, event: &FlowEvent) {
        match *event {
            FlowEvent::ConnectionOpened { endpoint, stamp } => {
                self.change(endpoint, |it| it.packets.change(stamp, 1));
            }
            FlowEvent::ConnectionClosed { endpoint, stamp } => {
                self.change(endpoint, |it| it.packets.change(stamp, -1));
            }
            FlowEvent::RequestStarted { endpoint, stamp } => {
                self.change(endpoint, |it| it.requests.change(stamp, 1));
            }
            FlowEvent::RequestEnded { endpoint, stamp } => {
                self.change(endpoint, |it| it.requests.change(stamp, -1));
            }
            FlowEvent::Finished(_) => {}
        }
    }

    fn change(&mut self, endpoint: SocketAddr, book: impl FnOnce(&mut Watched)) {
        if let Some(watched) = self.endpoints.get_mut(&endpoint) {
            book(watched);
        }
    }

    /// It is `now`: everything old enough is final.
    pub fn settle(&mut self, now: Nanos) {
        self.settle_until(Nanos::new(now.get().saturating_sub(SETTLE)));
    }

    fn settle_until(&mut self, until: Nanos) {
        self.series().for_each(|series| series.settle(until));
    }

    fn series(&mut self) -> impl Iterator<Item = &mut Series> {
        self.endpoints.values_mut().flat_map(Watched::all)
    }

    /// Starts intervals for a window that opens at `start`.
    pub fn open(&mut self, key: WindowKey, start: Nanos) {
        let interval = self.interval_ns;
        self.series().for_each(|series| series.open(key, start, interval));
    }

    /// Ends the intervals of a window at `end`.
    pub fn close(&mut self, key: WindowKey, end: Nanos) {
        self.settle_until(end);
        self.series().for_each(|series| series.close(key, end));
    }

    /// Forgets the intervals of a window.
    pub fn forget(&mut self, key: WindowKey) {
        self.series().for_each(|series| series.forget(key));
    }

    /// A window had more intervals than are kept.
    #[must_use]
    pub fn overflowed(&self, key: WindowKey) -> bool {
        self.endpoints.values().any(|it| it.requests.intervals(key).is_some_and(|it| it.overflowed))
    }

    /// The window's intervals, ordered by time and endpoint.
    #[must_use]
    pub fn rows(&self, key: WindowKey) -> Vec<InflightRow> {
        let mut rows = Vec::new();
        for (endpoint, watched) in &self.endpoints {
            let connections = watched.connections().intervals(key).map(|it| it.rows.as_slice());
            let requests = watched.requests.intervals(key).map(|it| it.rows.as_slice());
            let pairs = connections.unwrap_or_default().iter().zip(requests.unwrap_or_default());
            rows.extend(pairs.map(|(connections, requests)| {
                InflightRow::new(*endpoint, watched.role, watched.source(), connections, requests)
            }));
        }
        rows.sort_by_key(InflightRow::order);
        rows
    }

    /// What is in flight now.
    #[must_use]
    pub fn gauges(&self) -> Vec<GaugeRow> {
        let gauge = |(endpoint, watched): (&SocketAddr, &Watched)| GaugeRow {
            endpoint: *endpoint,
            role: watched.role,
            connections: watched.connections().now(),
            requests: watched.requests.now(),
            source: watched.source(),
        };
        self.endpoints.iter().map(gauge).collect()
    }
}

#[cfg(test)]
mod tests;
