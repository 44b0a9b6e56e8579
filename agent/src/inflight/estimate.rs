//! Connections as packets tell of them, where the socket is on another host: an estimate.
//!
//! Peers vanish, packets are lost and repeated, and with direct server return the responses take
//! another way. A connection counts from the endpoint's SYN-ACK or the first payload on, so that
//! refused and retried SYNs do not; it ends by RST, by FIN of both sides (of the client alone where the
//! endpoint is never heard), or by silence.

use std::collections::HashMap;
use std::net::SocketAddr;

use protocol::Nanos;

use super::series::Series;
use crate::capture::Segment;

/// How long a connection may be silent when nothing else is said: 300 s.
pub const DEFAULT_IDLE_EXPIRY_NS: u64 = 300_000_000_000;
/// A closed or half-open connection is remembered this long, so that late and repeated segments do
/// not look like a new one.
const MEMORY_NS: u64 = 60_000_000_000;
/// Connections remembered per endpoint.
const MOST: usize = 65_536;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Opening,
    Open,
    Closed,
}

#[derive(Clone, Copy, Debug)]
struct Tracked {
    phase: Phase,
    last: Nanos,
    /// Sequence number of the client's SYN.
    syn: Option<u32>,
    /// FIN of the client, and of the endpoint.
    fins: [bool; 2],
    /// A segment of the endpoint was seen.
    heard: bool,
}

/// Connections of one endpoint.
#[derive(Debug)]
pub(super) struct Estimate {
    pub(super) series: Series,
    pub(super) idle_expiry_ns: u64,
    connections: HashMap<SocketAddr, Tracked>,
    /// Connections that ended by silence.
    pub(super) expired: u64,
    /// Connections that found no room.
    pub(super) untracked: u64,
    /// Segments of clients and of the endpoint.
    seen: [bool; 2],
}

impl Default for Estimate {
    fn default() -> Self {
        Self {
            series: Series::default(),
            idle_expiry_ns: DEFAULT_IDLE_EXPIRY_NS,
            connections: HashMap::new(),
            expired: 0,
            untracked: 0,
            seen: [false; 2],
        }
    }
}

impl Estimate {
    /// Clients are seen and the endpoint never is: its responses take another way.
    pub(super) fn responses_unobserved(&self) -> bool {
        self.seen == [true, false]
    }

    /// The endpoint's socket is on this host: nothing needs to be estimated.
    pub(super) fn give_up(&mut self) {
        self.connections = HashMap::new();
    }

    /// Takes one segment; those of a packet's later pieces tell nothing new.
    pub(super) fn take(&mut self, segment: &Segment<'_>) {
        if segment.piece_offset > 0 {
            return;
        }
        // A SYN alone may be one that nobody answers.
        let opening = segment.flags.syn() && !segment.from_endpoint;
        let side = usize::from(segment.from_endpoint);
        self.seen[side] |= !opening;
        let peer = if segment.from_endpoint { segment.destination } else { segment.source };
        if !self.connections.contains_key(&peer) {
            if !opening && !segment.flags.syn() && segment.payload_len == 0 {
                return;
            }
            if self.connections.len() >= MOST {
                self.untracked += u64::from(opening);
                return;
            }
        }
        let tracked = self.connections.entry(peer).or_insert_with(|| Tracked::new(segment.stamp));
        let change = tracked.take(segment, opening);
        if change != 0 {
            self.series.change(segment.stamp, change);
        }
    }

    /// It is `now`: ends what has been silent for too long.
    pub(super) fn expire(&mut self, now: Nanos) {
        let Self { series, connections, expired, idle_expiry_ns, .. } = self;
        connections.retain(|_, tracked| {
            let patience = if tracked.phase == Phase::Open { *idle_expiry_ns } else { MEMORY_NS };
            let end = Nanos::new(tracked.last.get().saturating_add(patience));
            if end > now {
                return true;
            }
            if tracked.phase == Phase::Open {
                series.change(end, -1);
                *expired += 1;
            }
            false
        });
    }
}

impl Tracked {
    fn new(stamp: Nanos) -> Self {
        Self { phase: Phase::Opening, last: stamp, syn: None, fins: [false; 2], heard: false }
    }

    /// What `segment` changes about the number of connections.
    fn take(&mut self, segment: &Segment<'_>, opening: bool) -> i64 {
        let before = self.phase;
        self.last = self.last.max(segment.stamp);
        if opening {
            if self.syn != Some(segment.seq) {
                // Another connection of the same pair of addresses; the old one's end was not seen.
                *self = Self { syn: Some(segment.seq), ..Self::new(segment.stamp) };
            }
        } else if self.phase != Phase::Closed {
            self.follow(segment);
        }
        i64::from(self.phase == Phase::Open) - i64::from(before == Phase::Open)
    }

    fn follow(&mut self, segment: &Segment<'_>) {
        self.heard |= segment.from_endpoint;
        if segment.flags.syn() || segment.payload_len > 0 {
            self.phase = Phase::Open;
        }
        if segment.flags.fin() {
            self.fins[usize::from(segment.from_endpoint)] = true;
        }
        let left = self.fins == [true, true] || (self.fins[0] && !self.heard);
        if segment.flags.rst() || left {
            self.phase = Phase::Closed;
        }
    }
}
