//! Every metric family by name: what `docs/metrics.md` lists and `/metrics` exports.

/// Type of a family (OpenMetrics 1.0, section "Metric Types").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; its sample has the suffix `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Buckets, count and sum.
    Histogram,
    /// Text that does not change while the process lives; its sample has the suffix `_info`.
    Info,
}

impl Kind {
    /// Its name in a `# TYPE` line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// One metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name without unit and suffix.
    pub stem: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its unit, which ends its name; empty for a count.
    pub unit: &'static str,
    /// Names of its labels, in order.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

impl Family {
    /// Its whole name, as in its `# TYPE` line.
    #[must_use]
    pub fn name(&self) -> String {
        if self.unit.is_empty() {
            return self.stem.to_owned();
        }
        format!("{}_{}", self.stem, self.unit)
    }
}

const ENDPOINT: &[&str] = &["endpoint", "role"];
const CLASS: &[&str] = &["class"];

macro_rules! families {
    ($($name:ident = $stem:literal, $kind:ident, $unit:literal, $labels:expr, $help:literal;)*) => {
        $(
            #[doc = $help]
            pub(super) const $name: Family = Family {
                stem: $stem,
                kind: Kind::$kind,
                unit: $unit,
                labels: $labels,
                help: $help,
            };
        )*
        /// Every family, in the order of the export.
        pub const CATALOG: &[Family] = &[$($name),*];
    };
}

families! {
    REQUESTS_IN_FLIGHT = "goodput_agent_requests_in_flight", Gauge, "", ENDPOINT,
        "Requests whose response has not ended.";
    CONNECTIONS = "goodput_agent_connections", Gauge, "", ENDPOINT,
        "Connections that exist.";
    CONNECTIONS_EXACT = "goodput_agent_connections_exact", Gauge, "", ENDPOINT,
        "1 when connections come from the kernel's sockets, 0 when they are estimated from packets.";
    DRIFT = "goodput_agent_connection_drift", Gauge, "", ENDPOINT,
        "Connections that inet_diag lists minus those counted, at the last reconciliation.";
    CORRECTIONS = "goodput_agent_connection_corrections", Counter, "", ENDPOINT,
        "Times that a drift stayed and the count was set right.";
    CONCENTRATION = "goodput_agent_concentration", Gauge, "ratio", &["role"],
        "Requests in flight at the busiest endpoint over the mean of its role; absent when idle.";
    REQUESTS = "goodput_agent_requests", Counter, "", &["endpoint", "role", "outcome"],
        "Requests that ended, by class.";
    FRAMING_INVALID = "goodput_agent_framing_invalid", Counter, "", ENDPOINT,
        "Responses whose HTTP framing broke a rule.";
    OUTPUT_TOKENS = "goodput_agent_output_tokens", Counter, "", ENDPOINT,
        "Output tokens, from usage where the stream has it, else token events.";
    TTFT = "goodput_agent_time_to_first_token", Histogram, "seconds", ENDPOINT,
        "From the request's last byte to the first token-bearing event.";
    TPOT = "goodput_agent_time_per_output_token", Histogram, "seconds", ENDPOINT,
        "Last minus first token event over output tokens minus one, of requests that have two.";
    DURATION = "goodput_agent_request_duration", Histogram, "seconds", ENDPOINT,
        "From the request's first byte to the response's end.";
    LEGS_PAIRED = "goodput_agent_legs_paired", Counter, "", &[],
        "Requests seen on the client leg and on a backend leg.";
    LEGS_UNMATCHED = "goodput_agent_legs_unmatched", Counter, "", &["leg", "reason"],
        "Legs without counterpart, by reason.";
    RECEIPTS = "goodput_agent_receipts", Counter, "", &["verdict"],
        "Paired requests, by how the response's receipt compares with the backends seen.";
    RECORDS_ATTEMPTED = "goodput_agent_records_attempted", Counter, "", CLASS,
        "Records that the kernel side tried to write.";
    RECORDS_FAILED = "goodput_agent_records_failed", Counter, "", CLASS,
        "Records that found no room in the ring.";
    RECORDS_CONSUMED = "goodput_agent_records_consumed", Counter, "", CLASS,
        "Records taken out of the ring.";
    PACKETS = "goodput_agent_packets", Counter, "", &[],
        "Packets that the programs looked at.";
    ENDPOINT_PACKETS = "goodput_agent_endpoint_packets", Counter, "", &[],
        "Packets of configured endpoints.";
    UNPARSED_PACKETS = "goodput_agent_unparsed_packets", Counter, "", &[],
        "Packets that could not be parsed as ports.";
    PAYLOAD_BYTES = "goodput_agent_payload", Counter, "bytes", &[],
        "TCP payload of configured endpoints, each byte once.";
    GAPS = "goodput_agent_sequence_gaps", Counter, "", &[],
        "Holes in sequence space that were given up.";
    EVICTED_FLOWS = "goodput_agent_evicted_flows", Counter, "", &[],
        "Connections and parked bytes given up because of a bound on memory.";
    ADOPTED_SEGMENTS = "goodput_agent_adopted_segments", Counter, "", &[],
        "Payload segments of connections that are older than the agent.";
    OPAQUE_CONNECTIONS = "goodput_agent_opaque_connections", Counter, "", &[],
        "Connections that are TLS, HTTP/2 or a tunnel.";
    RETRANSMITS = "goodput_agent_retransmits", Counter, "", &[],
        "Segments that repeated bytes.";
    CONFLICTS = "goodput_agent_conflicting_segments", Counter, "", &[],
        "Segments that repeated bytes with other content.";
    MISSED_TRANSITIONS = "goodput_agent_missed_transitions", Counter, "", &[],
        "Socket transitions for which the kernel left the program out.";
    MISSED_RETRANSMITS = "goodput_agent_missed_retransmits", Counter, "", &[],
        "Retransmissions for which the kernel left the program out.";
    INTERFACE_PACKETS = "goodput_agent_interface_packets", Counter, "", &["interface"],
        "Packets that the programs saw on an interface.";
    PREEMPTED = "goodput_agent_preempted_packets", Gauge, "", &["interface"],
        "Packets that an interface received and the programs never saw, a few being underway.";
    COMPLETE = "goodput_agent_complete", Gauge, "", &[],
        "1 while nothing was lost, unparsed, adopted or preempted since the agent started.";
    INCOMPLETE = "goodput_agent_incomplete", Gauge, "", &["reason"],
        "1 for each reason why not everything was seen since the agent started.";
    WINDOWS = "goodput_agent_windows", Gauge, "", &[],
        "Windows kept.";
    WINDOWS_EXPIRED = "goodput_agent_windows_expired", Counter, "", &[],
        "Windows given up because nobody called about them for as long as their lease.";
    FLOWS = "goodput_agent_flows", Gauge, "", &[],
        "Connections followed.";
    RING_CAPACITY = "goodput_agent_ring_capacity", Gauge, "bytes", &[],
        "Size of the ring buffer.";
    JSONL_ERRORS = "goodput_agent_jsonl_errors", Counter, "", &[],
        "Failed writes to the JSONL file.";
    RELOADS = "goodput_agent_config_reloads", Counter, "", &["outcome"],
        "Configuration reloads, applied or refused.";
    DISCOVERY_READINGS = "goodput_agent_discovery_readings", Counter, "", &["outcome"],
        "Readings of LoxiLB's rules: other endpoints applied, unchanged, or failed.";
    DISCOVERED = "goodput_agent_discovered_endpoints", Gauge, "", &[],
        "Endpoints found by the last good reading of LoxiLB's rules.";
    API_REFUSED = "goodput_agent_api_connections_refused", Counter, "", &[],
        "API connections closed because as many as are served were open.";
    TICKS = "goodput_agent_ticks", Counter, "", &[],
        "Ticks exported, this one included.";
    TICK_TIME = "goodput_agent_tick_timestamp", Gauge, "seconds", &[],
        "When this tick was taken, in Unix time.";
    START_TIME = "process_start_time", Gauge, "seconds", &[],
        "When the process started, in Unix time.";
    BUILD = "goodput_agent_build", Info, "", &["version", "source", "kernel"],
        "Version of the agent, its source of records, and the kernel's release.";
}
