//! Counters over a window: differences of two snapshots.

use serde::Serialize;

use crate::capture::{CaptureCounters, ClassCounters};
use crate::flow::FlowStats;

/// Everything counted up to an instant at which the source was drained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Of the source.
    pub capture: CaptureCounters,
    /// Of the flows.
    pub flows: FlowStats,
    /// Packets that another program took away.
    pub preempted: u64,
    /// Watched interfaces that are gone.
    pub lost_interfaces: u64,
    /// Socket transitions for which the kernel left the program out.
    pub missed_transitions: u64,
    /// Retransmissions for which the kernel left the program out.
    pub missed_retransmits: u64,
    /// Counts of connections that were set right, because a drift stayed.
    pub connection_corrections: u64,
    /// Counts of connections that were set to the kernel's own, because records were lost.
    pub connection_resynchronisations: u64,
}

/// Counters as exported; keys are written in this order (`docs/agent-api.md`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WindowCounters {
    /// Records of segments.
    pub segments: ClassCounters,
    /// Records of socket state changes.
    pub sockets: ClassCounters,
    /// All packets that the programs looked at.
    pub packets: u64,
    /// Packets of configured endpoints.
    pub endpoint_packets: u64,
    /// Packets that could not be parsed as ports.
    pub unparsed_packets: u64,
    /// TCP payload bytes of configured endpoints, each once.
    pub payload_bytes: u64,
    /// Holes in sequence space that were given up.
    pub gaps: u64,
    /// Connections and parked bytes given up because of a bound.
    pub evicted_flows: u64,
    /// Payload segments of connections that are older than the agent.
    pub adopted_segments: u64,
    /// Connections that are TLS, HTTP/2 or a tunnel.
    pub opaque_connections: u64,
    /// Segments that repeated bytes.
    pub retransmits: u64,
    /// Segments that repeated bytes with other content.
    pub conflicts: u64,
    /// Bytes of requests and responses that could be assigned to no request.
    pub unassigned_bytes: u64,
    /// Packets that another program took away.
    pub preempted_packets: u64,
    /// Watched interfaces that were gone at the end, or at the beginning already.
    pub lost_interfaces: u64,
    /// Socket transitions for which the kernel left the program out.
    pub missed_transitions: u64,
    /// Retransmissions for which the kernel left the program out.
    pub missed_retransmits: u64,
    /// Counts of connections that were set right, because a drift stayed.
    pub connection_corrections: u64,
    /// Counts of connections that were set to the kernel's own, because records were lost.
    pub connection_resynchronisations: u64,
}

impl WindowCounters {
    /// What happened between two snapshots.
    #[must_use]
    pub fn between(before: &Snapshot, after: &Snapshot) -> Self {
        let (old, new) = (&before.capture, &after.capture);
        let (old_flows, new_flows) = (&before.flows, &after.flows);
        Self {
            segments: class(old.segments, new.segments),
            sockets: class(old.sockets, new.sockets),
            packets: new.packets.wrapping_sub(old.packets),
            endpoint_packets: new.endpoint_packets.wrapping_sub(old.endpoint_packets),
            unparsed_packets: new.unparsed_packets.wrapping_sub(old.unparsed_packets),
            payload_bytes: new_flows.payload_bytes - old_flows.payload_bytes,
            gaps: new_flows.gaps - old_flows.gaps,
            evicted_flows: new_flows.evicted_flows - old_flows.evicted_flows,
            adopted_segments: new_flows.adopted_segments - old_flows.adopted_segments,
            opaque_connections: new_flows.opaque_connections - old_flows.opaque_connections,
            retransmits: new_flows.retransmits - old_flows.retransmits,
            conflicts: new_flows.conflicts - old_flows.conflicts,
            unassigned_bytes: new_flows.unassigned_bytes - old_flows.unassigned_bytes,
            lost_interfaces: after.lost_interfaces.max(before.lost_interfaces),
            preempted_packets: after.preempted.saturating_sub(before.preempted),
            missed_transitions: after.missed_transitions.saturating_sub(before.missed_transitions),
            missed_retransmits: after.missed_retransmits.saturating_sub(before.missed_retransmits),
            connection_corrections: after.connection_corrections - before.connection_corrections,
            connection_resynchronisations: after.connection_resynchronisations
                - before.connection_resynchronisations,
        }
    }
}

fn class(before: ClassCounters, after: ClassCounters) -> ClassCounters {
    ClassCounters {
        attempted: after.attempted.wrapping_sub(before.attempted),
        failed: after.failed.wrapping_sub(before.failed),
        consumed: after.consumed.wrapping_sub(before.consumed),
    }
}
