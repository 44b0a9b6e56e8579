//! Connections and requests in flight per endpoint: now, and per interval of a window.

mod account;
mod adoption;
mod concentration;
mod estimate;
mod interval;
mod row;
mod series;
mod sockets;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use protocol::Nanos;

pub use account::{Agreement, Evidence, Mark};
pub use concentration::{
    BackendLoad, CONCENTRATION_SCHEMA, Concentration, RoleConcentration, RoleSpread, Spread, Ticks,
};
pub use estimate::DEFAULT_IDLE_EXPIRY_NS;
pub use interval::{Interval, Intervals};
pub use row::{GAUGES_SCHEMA, GaugeRow, INFLIGHT_SCHEMA, InflightRow};
pub use sockets::gauge_change;

use crate::capture::{Segment, SocketTransition};
use crate::endpoint::{Endpoint, Role};
use crate::flow::FlowEvent;
use crate::sockdiag::NamespaceSockets;
use account::Account;
use adoption::Adoption;
use estimate::Estimate;
use series::Series;

/// Stamps of one host's CPUs reach user space within this time of each other; what comes later is
/// booked at the end of it.
const SETTLE: u64 = 1_000_000_000;
/// How often silent connections are looked for.
const EXPIRE_EVERY: u64 = 1_000_000_000;

/// Where a count of connections comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionSource {
    /// The kernel's sockets: exact, for sockets of this host.
    Tracepoint,
    /// SYN, FIN and RST: an estimate, since peers vanish and packets are retried.
    Packets,
    /// None: the address exists in several network namespaces, which the tracepoint can't tell apart.
    Unknown,
}

/// What a count of connections is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Every connection is counted.
    Exact,
    /// Connections whose end was not seen count until they have been silent for long enough.
    Estimated,
    /// Nothing can be said.
    Unknown,
}

impl ConnectionSource {
    /// What a count from this source is worth.
    #[must_use]
    pub const fn certainty(self) -> Certainty {
        match self {
            Self::Tracepoint => Certainty::Exact,
            Self::Packets => Certainty::Estimated,
            Self::Unknown => Certainty::Unknown,
        }
    }
}

/// Number of a window.
pub type WindowKey = u64;

#[derive(Debug)]
struct Watched {
    role: Role,
    sockets: Account,
    packets: Estimate,
    requests: Series,
}

impl Watched {
    fn all(&mut self) -> [&mut Series; 3] {
        [&mut self.sockets.series, &mut self.packets.series, &mut self.requests]
    }

    /// One source per endpoint, never both: the kernel's sockets as soon as there is one.
    fn source(&self) -> ConnectionSource {
        match self.sockets.evidence {
            _ if self.sockets.is_ambiguous() => ConnectionSource::Unknown,
            Evidence::None => ConnectionSource::Packets,
            Evidence::Transition | Evidence::Socket => ConnectionSource::Tracepoint,
        }
    }

    fn connections(&self) -> Option<&Series> {
        match self.source() {
            ConnectionSource::Tracepoint => Some(&self.sockets.series),
            ConnectionSource::Packets => Some(&self.packets.series),
            ConnectionSource::Unknown => None,
        }
    }
}

/// What is in flight at every endpoint.
#[derive(Debug)]
pub struct Inflight {
    endpoints: BTreeMap<SocketAddr, Watched>,
    interval_ns: u64,
    /// First transitions since new endpoints are watched, until their older connections are adopted.
    adoption: Option<Adoption>,
    /// Packets may be an endpoint's only source.
    by_packets: bool,
    expired_at: Nanos,
}

impl Inflight {
    /// Nothing is in flight; windows are divided into intervals of `interval_ns` nanoseconds.
    #[must_use]
    pub fn new(endpoints: &[Endpoint], interval_ns: u64) -> Self {
        let watched = |endpoint: &Endpoint| {
            let watched = Watched {
                role: endpoint.role,
                sockets: Account::default(),
                packets: Estimate::default(),
                requests: Series::default(),
            };
            (endpoint.address, watched)
        };
        Self {
            endpoints: endpoints.iter().map(watched).collect(),
            interval_ns,
            adoption: Some(Adoption::of(endpoints.iter().map(|endpoint| endpoint.address))),
            by_packets: true,
            expired_at: Nanos::new(0),
        }
    }

    /// Ends estimated connections after `idle_expiry_ns` nanoseconds of silence.
    pub fn set_idle_expiry(&mut self, idle_expiry_ns: u64) {
        self.endpoints.values_mut().for_each(|it| it.packets.idle_expiry_ns = idle_expiry_ns);
    }

    /// Watches exactly `endpoints`: those that stay keep what is in flight, those that go take
    /// theirs along. A new one has no intervals in windows that are open; [`Inflight::adopt`] brings
    /// its older connections.
    pub fn set_endpoints(&mut self, endpoints: &[Endpoint]) {
        let fresh = Self::new(endpoints, self.interval_ns).endpoints;
        self.by_packets = true;
        let mut old = std::mem::replace(&mut self.endpoints, fresh);
        let expiry = old.values().next().map(|it| it.packets.idle_expiry_ns);
        let new = self.endpoints.keys().copied().filter(|it| !old.contains_key(it));
        self.adoption = Some(Adoption::of(new));
        for (address, watched) in &mut self.endpoints {
            if let Some(expiry) = expiry {
                watched.packets.idle_expiry_ns = expiry;
            }
            if let Some(kept) = old.remove(address) {
                *watched = Watched { role: watched.role, ..kept };
            }
        }
    }

    /// Windows opened from now on are divided into intervals of `interval_ns` nanoseconds.
    pub fn set_interval(&mut self, interval_ns: u64) {
        self.interval_ns = interval_ns;
    }

    /// Books a change of a socket's state.
    pub fn socket(&mut self, transition: &SocketTransition) {
        if !transition.at_endpoint {
            return;
        }
        let Some(watched) = self.endpoints.get_mut(&transition.local) else { return };
        if let Some(adoption) = &mut self.adoption {
            adoption.saw(transition);
        }
        watched.sockets.transition(transition);
        watched.packets.give_up();
    }

    /// Books what a packet tells about a connection whose socket is elsewhere.
    pub fn segment(&mut self, segment: &Segment<'_>) {
        if !self.by_packets {
            return;
        }
        let endpoint = if segment.from_endpoint { segment.source } else { segment.destination };
        if let Some(watched) = self.endpoints.get_mut(&endpoint)
            && watched.sockets.evidence == Evidence::None
        {
            watched.packets.take(segment);
        }
    }

    /// Books requests. Connections are booked by [`Inflight::socket`] and [`Inflight::segment`].
    pub fn flow(&mut self, event: &FlowEvent) {
        let (endpoint, stamp, change) = match *event {
            FlowEvent::RequestStarted { endpoint, stamp } => (endpoint, stamp, 1),
            FlowEvent::RequestEnded { endpoint, stamp } => (endpoint, stamp, -1),
            _ => return,
        };
        if let Some(watched) = self.endpoints.get_mut(&endpoint) {
            watched.requests.change(stamp, change);
        }
    }

    /// It is `now`: everything old enough is final.
    pub fn settle(&mut self, now: Nanos) {
        // Evidence of a socket stays.
        self.by_packets = self.endpoints.values().any(|it| it.sockets.evidence == Evidence::None);
        if now.get().saturating_sub(self.expired_at.get()) >= EXPIRE_EVERY {
            self.expired_at = now;
            self.endpoints.values_mut().for_each(|it| it.packets.expire(now));
        }
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

    /// The window ends at `end`; it is closed once what came before has been booked.
    pub fn bound(&mut self, key: WindowKey, end: Nanos) {
        self.series().for_each(|series| series.bound(key, end));
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
}

/// Older connections, and reconciliation.
impl Inflight {
    /// Adopts the connections that are older than the watch of their endpoint. The dump was made after
    /// the source knew the endpoint, and every transition from before its end has been booked.
    pub fn adopt(&mut self, dumps: &[NamespaceSockets]) {
        let Some(adoption) = self.adoption.take() else { return };
        let adopted = adoption.merge(dumps);
        for (endpoint, watched) in &mut self.endpoints {
            watched.sockets.look(*endpoint, dumps);
            watched.sockets.adopt(adopted.get(endpoint).copied().unwrap_or(0));
        }
    }

    /// Nothing will be adopted: no more first transitions need to be kept.
    pub fn adopt_nothing(&mut self) {
        self.adoption = None;
    }

    /// Sets counts to the kernel's own gauges, after records were lost. Returns how many differed.
    pub fn resynchronise(&mut self, kernel: &[(SocketAddr, i64)], stamp: Nanos) -> usize {
        let differs = |(endpoint, change): &&(SocketAddr, i64)| {
            let watched = self.endpoints.get_mut(endpoint);
            watched.is_some_and(|watched| watched.sockets.resynchronise(*change, stamp))
        };
        kernel.iter().filter(differs).count()
    }

    /// Every count, right before a dump.
    #[must_use]
    pub fn marks(&self) -> BTreeMap<SocketAddr, Mark> {
        self.endpoints.iter().map(|(endpoint, it)| (*endpoint, it.sockets.mark())).collect()
    }

    /// Compares every count with a dump that was made between `before` and `now`; all records from
    /// before now have been booked, and `lost` in all found no room.
    pub fn reconcile(
        &mut self,
        before: &BTreeMap<SocketAddr, Mark>,
        dumps: &[NamespaceSockets],
        lost: u64,
        now: Nanos,
    ) {
        for (endpoint, watched) in &mut self.endpoints {
            watched.sockets.look(*endpoint, dumps);
            if watched.sockets.evidence != Evidence::None {
                watched.packets.give_up();
            }
            if let Some(before) = before.get(endpoint) {
                watched.sockets.reconcile(*endpoint, *before, dumps, lost, now);
            }
        }
    }

    /// Counts set right since the agent started, because a drift stayed.
    #[must_use]
    pub fn corrections(&self) -> u64 {
        self.endpoints.values().map(|it| it.sockets.agreement.corrections).sum()
    }

    /// Counts set to the kernel's own since the agent started, because records were lost.
    #[must_use]
    pub fn resynchronisations(&self) -> u64 {
        self.endpoints.values().map(|it| it.sockets.agreement.resynchronisations).sum()
    }
}

/// What is told.
impl Inflight {
    /// The window's intervals, ordered by time and endpoint.
    #[must_use]
    pub fn rows(&self, key: WindowKey) -> Vec<InflightRow> {
        let mut rows = Vec::new();
        for (endpoint, watched) in &self.endpoints {
            let connections = watched.connections().and_then(|it| it.intervals(key));
            let connections = connections.map(|it| it.rows.as_slice()).unwrap_or_default();
            let row = |(index, requests)| {
                let connections = connections.get(index);
                InflightRow::new(*endpoint, watched.role, watched.source(), connections, requests)
            };
            rows.extend(watched.request_rows(key).iter().enumerate().map(row));
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
            connections: watched.connections().map(Series::now),
            requests: watched.requests.now(),
            source: watched.source(),
            certainty: watched.source().certainty(),
            evidence: watched.sockets.evidence,
            agreement: watched.sockets.agreement,
            expired: watched.packets.expired,
            untracked: watched.packets.untracked,
            responses_unobserved: watched.packets.responses_unobserved(),
        };
        self.endpoints.iter().map(gauge).collect()
    }

    /// How requests in flight are spread over each role's backends now.
    #[must_use]
    pub fn spread(&self) -> Vec<RoleSpread> {
        let loads = self.endpoints.values().map(|it| (it.role, it.requests.now() as f64));
        let roles = concentration::by_role(loads);
        roles
            .into_iter()
            .map(|(role, loads)| RoleSpread { role, spread: Spread::of(&loads) })
            .collect()
    }

    /// How the window's requests were spread over each role's backends.
    #[must_use]
    pub fn concentration(&self, key: WindowKey, window_id: String) -> Concentration {
        let loads: Vec<_> = self
            .endpoints
            .iter()
            .map(|(endpoint, it)| (*endpoint, it.role, it.request_rows(key)))
            .collect();
        concentration::concentration(window_id, self.interval_ns, &loads)
    }
}

impl Watched {
    fn request_rows(&self, key: WindowKey) -> &[Interval] {
        self.requests.intervals(key).map(|it| it.rows.as_slice()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
