//! All connections, by address pair and generation.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::net::SocketAddr;

use foldhash::HashMap;
use foldhash::HashMapExt as _;
use protocol::Nanos;

use super::connection::{Connection, Identity, Shared};
use super::event::{ConnectionId, FlowEvent};
use super::limits::{Budget, FlowLimits};
use super::stats::FlowStats;
use crate::capture::{Retransmit, Segment};

/// Late segments of a closed connection come within this time.
const CLOSED_PATIENCE: u64 = 10_000_000_000;
/// A segment this near to a closed connection's last bytes is a late one of it.
const CLOSED_REACH: i64 = 1 << 20;

/// Endpoint and peer.
type Key = (SocketAddr, SocketAddr);

/// What is remembered of a closed connection.
#[derive(Clone, Copy, Debug)]
struct Closed {
    at: Nanos,
    client_syn: Option<u32>,
    endpoint_syn: Option<u32>,
    /// Sequence numbers after the last bytes of request and response.
    ends: [Option<u32>; 2],
}

/// All connections to configured endpoints.
#[derive(Debug)]
pub struct FlowTable {
    endpoints: HashSet<SocketAddr>,
    limits: FlowLimits,
    connections: HashMap<Key, Connection>,
    waiting: BTreeSet<Key>,
    closed: HashMap<Key, Closed>,
    closed_order: VecDeque<(Nanos, Key)>,
    budget: Budget,
    stats: FlowStats,
    events: Vec<FlowEvent>,
    next_id: u64,
    reads_prompts: bool,
}

impl FlowTable {
    /// A table for connections to `endpoints`.
    #[must_use]
    pub fn new(endpoints: impl IntoIterator<Item = SocketAddr>, limits: FlowLimits) -> Self {
        Self {
            endpoints: endpoints.into_iter().collect(),
            limits,
            connections: HashMap::new(),
            waiting: BTreeSet::new(),
            closed: HashMap::new(),
            closed_order: VecDeque::new(),
            budget: Budget::new(limits),
            stats: FlowStats::default(),
            events: Vec::new(),
            next_id: 0,
            reads_prompts: false,
        }
    }

    /// Follows connections to `endpoints` from now on, and to no other. What was begun with others
    /// ends here.
    pub fn set_endpoints(&mut self, endpoints: impl IntoIterator<Item = SocketAddr>) {
        self.endpoints = endpoints.into_iter().collect();
        let gone: Vec<(Nanos, Key)> = self
            .connections
            .iter()
            .filter(|(key, _)| !self.endpoints.contains(&key.0))
            .map(|(key, it)| (it.last_stamp, *key))
            .collect();
        for (stamp, key) in gone {
            self.end(key, stamp);
        }
    }

    /// Whether prefixes of prompts are hashed in requests that begin from now on: it costs time for
    /// every byte, so that it is done only while somebody asks for it.
    pub fn read_prompts(&mut self, reads: bool) {
        self.reads_prompts = reads;
    }

    /// Counts since the table was made.
    #[must_use]
    pub fn stats(&self) -> FlowStats {
        self.stats
    }

    /// What has happened since the last call, in order.
    pub fn take_events(&mut self) -> Vec<FlowEvent> {
        std::mem::take(&mut self.events)
    }

    /// Takes one record.
    pub fn take(&mut self, segment: &Segment<'_>) {
        let (endpoint, peer) = if segment.from_endpoint {
            (segment.source, segment.destination)
        } else {
            (segment.destination, segment.source)
        };
        let key = (endpoint, peer);
        // Nearly every record: what is in the table is of a configured endpoint.
        if !segment.flags.syn() && self.with(key, |it, shared| it.take(segment, shared)) {
            return;
        }
        if !self.endpoints.contains(&endpoint) || !self.admit(key, segment) {
            self.stats.stray_segments += 1;
            return;
        }
        self.with(key, |connection, shared| connection.take(segment, shared));
    }

    /// Takes a report of this host's TCP: it counts for the request in flight on that connection.
    pub fn retransmit(&mut self, report: &Retransmit) {
        let key = if report.from_endpoint {
            (report.source, report.destination)
        } else {
            (report.destination, report.source)
        };
        if let Some(connection) = self.connections.get_mut(&key) {
            connection.retransmitted(report.from_endpoint);
        }
    }

    /// Makes sure that the connection of `segment` is in the table; false when it is none to follow.
    fn admit(&mut self, key: Key, segment: &Segment<'_>) -> bool {
        let syn = segment.flags.syn();
        if let Some(connection) = self.connections.get_mut(&key) {
            if !syn || belongs(connection, segment) {
                return true;
            }
            // The pair of addresses was reused; how the old connection ended was not seen.
            self.end(key, segment.stamp);
        } else if let Some(closed) = self.closed.get(&key) {
            if is_late(closed, segment) {
                return false;
            }
        } else if !syn && segment.payload_len == 0 {
            return false;
        }
        if !syn && segment.payload_len == 0 {
            return false;
        }
        self.insert(key, segment);
        true
    }

    fn insert(&mut self, key: Key, segment: &Segment<'_>) {
        if self.connections.len() >= self.limits.connections {
            self.evict();
        }
        let identity = Identity {
            id: ConnectionId(self.next_id),
            endpoint: key.0,
            peer: key.1,
            ifindex: segment.ifindex,
        };
        self.next_id += 1;
        let adopted = !segment.flags.syn();
        let pipeline = self.limits.pipeline;
        let connection = Connection::new(identity, adopted, segment.stamp, pipeline);
        self.connections.insert(key, connection);
    }

    /// Gives up the quietest sixteenth of all connections, so that a flood does not search for a
    /// victim with each new one.
    fn evict(&mut self) {
        let mut quiet: Vec<(Nanos, Key)> =
            self.connections.iter().map(|(key, it)| (it.last_stamp, *key)).collect();
        quiet.sort_unstable();
        quiet.truncate((self.limits.connections / 16).max(1));
        for (stamp, key) in quiet {
            self.stats.evicted_flows += 1;
            self.end(key, stamp);
        }
    }

    /// Works on one connection and books what follows from it; false when it is not in the table.
    fn with(&mut self, key: Key, work: impl FnOnce(&mut Connection, &mut Shared<'_>)) -> bool {
        let Self { connections, waiting, budget, stats, events, reads_prompts, .. } = self;
        let Some(connection) = connections.get_mut(&key) else { return false };
        let reads_prompts = *reads_prompts;
        work(connection, &mut Shared { budget, stats, events, reads_prompts });
        if connection.is_over() {
            let stamp = connection.last_stamp;
            self.end(key, stamp);
        } else if connection.listed != connection.is_waiting() {
            connection.listed = !connection.listed;
            if connection.listed {
                waiting.insert(key)
            } else {
                waiting.remove(&key)
            };
        }
        true
    }

    fn end(&mut self, key: Key, stamp: Nanos) {
        self.waiting.remove(&key);
        let Self { budget, stats, events, reads_prompts, .. } = self;
        let Some(mut connection) = self.connections.remove(&key) else { return };
        let reads_prompts = *reads_prompts;
        connection.end(stamp, &mut Shared { budget, stats, events, reads_prompts });
        let closed = Closed {
            at: stamp,
            client_syn: connection.client_syn,
            endpoint_syn: connection.endpoint_syn,
            ends: [connection.request.seq(), connection.response.seq()],
        };
        self.closed.insert(key, closed);
        self.closed_order.push_back((stamp, key));
        while self.closed_order.len() > self.limits.closed {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((at, key)) = self.closed_order.pop_front()
            && self.closed.get(&key).is_some_and(|closed| closed.at == at)
        {
            self.closed.remove(&key);
        }
    }

    /// It is `now`: gives up what has been waited for long enough.
    pub fn settle(&mut self, now: Nanos) {
        for key in self.waiting.clone() {
            self.with(key, |connection, shared| connection.settle(now, shared));
        }
        let forget = now.get().saturating_sub(CLOSED_PATIENCE);
        while self.closed_order.front().is_some_and(|(at, _)| at.get() < forget) {
            self.forget_oldest();
        }
    }

    /// Hands over every request that is complete, and every opaque connection.
    pub fn flush(&mut self) {
        let keys: BTreeSet<_> = self.connections.keys().copied().collect();
        for key in keys {
            self.with(key, Connection::flush);
        }
    }

    /// Ends what clients have left open by closing their side.
    pub fn give_up_left(&mut self) {
        for key in self.waiting.clone() {
            self.with(key, Connection::give_up_left);
        }
    }

    /// First signs of the requests whose observation is still to come: those in flight, and those
    /// that were answered before they ended.
    pub fn open_requests(&self) -> impl Iterator<Item = Nanos> {
        self.connections.values().flat_map(Connection::open_requests)
    }

    /// Connections in the table.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Requests that nobody has answered in full.
    #[cfg(test)]
    pub(super) fn in_flight(&self) -> usize {
        self.connections.values().map(Connection::in_flight).sum()
    }

    #[cfg(test)]
    pub(super) fn parked_cost(&self) -> usize {
        self.budget.used()
    }
}

/// Whether a SYN is one that `connection` began with. One that comes late proves that the connection
/// is not older than the agent.
fn belongs(connection: &mut Connection, segment: &Segment<'_>) -> bool {
    let first = segment.seq.wrapping_add(1);
    let (known, stream) = if segment.from_endpoint {
        (connection.endpoint_syn, &connection.response)
    } else {
        (connection.client_syn, &connection.request)
    };
    if let Some(known) = known {
        return known == segment.seq;
    }
    let fits = stream.distance(first).is_none() || stream.begins_at(first);
    if fits && connection.adopted {
        connection.begin_late();
    }
    fits
}

/// Whether `segment` is a late one of a connection that is over.
fn is_late(closed: &Closed, segment: &Segment<'_>) -> bool {
    if segment.flags.syn() {
        let known = if segment.from_endpoint { closed.endpoint_syn } else { closed.client_syn };
        return known == Some(segment.seq);
    }
    let end = closed.ends[usize::from(segment.from_endpoint)];
    let distance = end.map(|end| i64::from(segment.seq.wrapping_sub(end).cast_signed()));
    distance.is_none_or(|distance| distance.abs() <= CLOSED_REACH)
}
