//! Why not everything was seen, what that was, and the mend.

use serde::Serialize;

use crate::capture::pcap::{FileFacts, Stop};
use crate::window::{Reason, WindowCounters};

/// One reason why a report is not complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Stable code (`docs/agent.md`).
    pub reason: &'static str,
    /// What was seen.
    pub detail: String,
    /// What can be done about it.
    pub mend: &'static str,
}

impl Cause {
    fn new(reason: &'static str, detail: String, mend: &'static str) -> Self {
        Self { reason, detail, mend }
    }

    /// The file did not end in order.
    pub(super) fn of_end(stop: &Stop) -> Self {
        let (reason, mend) = match stop {
            Stop::Torn { .. } => {
                ("torn_record", "end the capture with SIGINT and copy the file whole")
            }
            Stop::Damaged { .. } => {
                ("damaged_record", "copy the file again; `pcapfix FILE` saves what lies behind")
            }
            Stop::Read { .. } => ("read_failed", "check the disk or the pipe"),
        };
        Self::new(reason, stop.to_string(), mend)
    }

    /// What the file says about its own making.
    pub(super) fn of_file(facts: &FileFacts) -> Vec<Self> {
        let links: Vec<_> = facts.unknown_links.keys().map(|link| link.0.to_string()).collect();
        let found = [
            (facts.dropped, "capture_dropped", "packets lost by the capturing program", BUFFER),
            (facts.cut_segments, "snap_length", "segments cut by the snapshot length", SNAP_LENGTH),
            (facts.unstamped, "unstamped_record", "records without a stamp", UNSTAMPED),
        ];
        let counted = found.into_iter().filter(|(count, ..)| *count > 0);
        let counted = counted
            .map(|(count, reason, what, mend)| Self::new(reason, format!("{count} {what}"), mend));
        let links = (!links.is_empty()).then(|| {
            let detail = format!("frames of link types that are not read: {}", links.join(", "));
            Self::new("unknown_link_type", detail, LINK_TYPE)
        });
        counted.chain(links).collect()
    }

    /// What the flows met, as in a window of live capture.
    pub(super) fn of_flows(
        reason: Reason,
        counters: &WindowCounters,
        open_requests: usize,
    ) -> Self {
        let (code, count, what, mend) = match reason {
            Reason::SequenceGap => {
                let count = counters.gaps + counters.conflicts;
                ("sequence_gap", count, "holes or contradictions in streams", GAP)
            }
            Reason::UnparsedPacket => {
                let count = counters.unparsed_packets;
                ("unparsed_packet", count, "packets whose ports can't be read", UNPARSED)
            }
            Reason::AdoptedConnection => {
                let count = counters.adopted_segments;
                (
                    "adopted_connection",
                    count,
                    "segments of connections without their start",
                    ADOPTED,
                )
            }
            Reason::MemoryLimit => {
                ("memory_limit", counters.evicted_flows, "flows given up", MEMORY)
            }
            Reason::UnassignedBytes => (
                "unassigned_bytes",
                counters.unassigned_bytes,
                "bytes that belong to no recognised request",
                UNASSIGNED,
            ),
            Reason::OpenRequests => {
                let count = u64::try_from(open_requests).unwrap_or(u64::MAX);
                ("open_requests", count, "requests in flight at the end", OPEN)
            }
            // Nothing of a file can bring these about.
            _ => ("counters_disagree", 1, "counters that disagree", "report it"),
        };
        Self::new(code, format!("{count} {what}"), mend)
    }
}

const BUFFER: &str = "capture with a larger buffer (tcpdump -B 65536) and a narrower filter";
const SNAP_LENGTH: &str = "capture whole packets (tcpdump -s 0)";
const UNSTAMPED: &str = "capture with a tool that writes enhanced packet blocks";
const LINK_TYPE: &str = "capture on an Ethernet, loopback, tun or the `any` interface";
const GAP: &str = "capture on every interface that the traffic uses, and whole packets";
const UNPARSED: &str = "raise the path's MTU; filter out tunnels";
const ADOPTED: &str = "start the capture before the connections";
const MEMORY: &str = "cut the file by time or by port (editcap, tshark -Y)";
const UNASSIGNED: &str =
    "capture from before the connections begin, on every interface the traffic uses";
const OPEN: &str = "capture until the last request has ended";
