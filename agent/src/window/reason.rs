//! Why a window is not complete.

use std::collections::BTreeSet;

use serde::Serialize;

use super::counters::WindowCounters;

/// A coded reason; the codes are stable (`docs/agent-api.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Records found no room in the ring.
    RingFull,
    /// Holes in sequence space were given up.
    SequenceGap,
    /// Packets could not be parsed as ports.
    UnparsedPacket,
    /// Connections that are older than the agent carried traffic.
    AdoptedConnection,
    /// A bound on memory was reached.
    MemoryLimit,
    /// Another program takes packets away before the agent's.
    Preempted,
    /// A watched interface is gone: an interface of the same name is another one.
    InterfaceLost,
    /// Bytes of watched connections could be assigned to no request: requests may be missing.
    UnassignedBytes,
    /// Attempted minus failed is not consumed, although the source was drained.
    CountersDisagree,
    /// The kernel left the tracepoint program out: connections may have been miscounted.
    MissedTransitions,
    /// The count of connections was wrong for at least two reconciliations, and was set right.
    ConnectionDrift,
    /// The source stopped delivering.
    SourceFailed,
    /// Requests were still in flight when the window was closed.
    OpenRequests,
    /// The configured endpoints were changed while the window was open.
    EndpointsChanged,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 14] = [
        Self::RingFull,
        Self::SequenceGap,
        Self::UnparsedPacket,
        Self::AdoptedConnection,
        Self::MemoryLimit,
        Self::Preempted,
        Self::InterfaceLost,
        Self::UnassignedBytes,
        Self::CountersDisagree,
        Self::MissedTransitions,
        Self::ConnectionDrift,
        Self::SourceFailed,
        Self::OpenRequests,
        Self::EndpointsChanged,
    ];

    /// Its code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::RingFull => "ring_full",
            Self::SequenceGap => "sequence_gap",
            Self::UnparsedPacket => "unparsed_packet",
            Self::AdoptedConnection => "adopted_connection",
            Self::MemoryLimit => "memory_limit",
            Self::Preempted => "preempted",
            Self::InterfaceLost => "interface_lost",
            Self::UnassignedBytes => "unassigned_bytes",
            Self::CountersDisagree => "counters_disagree",
            Self::MissedTransitions => "missed_transitions",
            Self::ConnectionDrift => "connection_drift",
            Self::SourceFailed => "source_failed",
            Self::OpenRequests => "open_requests",
            Self::EndpointsChanged => "endpoints_changed",
        }
    }
}

/// Packets that interface and programs may disagree by while traffic flows: the interface counts a
/// packet before the programs run.
const PREEMPTED_SLACK: u64 = 64;

/// The reasons that follow from `counters`.
#[must_use]
pub fn reasons(counters: &WindowCounters) -> BTreeSet<Reason> {
    let lost = counters.segments.failed + counters.sockets.failed;
    let preempted = counters.preempted_packets > PREEMPTED_SLACK + counters.packets / 1000;
    let agree = [counters.segments, counters.sockets]
        .iter()
        .all(|class| class.attempted.checked_sub(class.failed) == Some(class.consumed));
    let found = [
        (lost > 0, Reason::RingFull),
        (counters.gaps > 0 || counters.conflicts > 0, Reason::SequenceGap),
        (counters.unparsed_packets > 0, Reason::UnparsedPacket),
        (counters.adopted_segments > 0, Reason::AdoptedConnection),
        (counters.evicted_flows > 0, Reason::MemoryLimit),
        (preempted, Reason::Preempted),
        (counters.lost_interfaces > 0, Reason::InterfaceLost),
        (counters.unassigned_bytes > 0, Reason::UnassignedBytes),
        (!agree, Reason::CountersDisagree),
        (counters.missed_transitions > 0, Reason::MissedTransitions),
        (counters.connection_corrections > 0, Reason::ConnectionDrift),
    ];
    found.into_iter().filter(|(holds, _)| *holds).map(|(_, reason)| reason).collect()
}
