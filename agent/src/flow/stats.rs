//! What flows count.

/// Counts since the table was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowStats {
    /// Payload bytes by sequence number: each once, whatever was repeated or seen on several interfaces.
    /// Those of a hole count, too.
    pub payload_bytes: u64,
    /// Holes in sequence space that were given up, and response bytes that were not captured.
    pub gaps: u64,
    /// Connections and parked bytes given up because of a bound.
    pub evicted_flows: u64,
    /// Connections that turned out to be TLS, HTTP/2 or a tunnel.
    pub opaque_connections: u64,
    /// Payload segments of connections that are older than the agent.
    pub adopted_segments: u64,
    /// Segments whose bytes had been seen on another interface.
    pub second_views: u64,
    /// Segments whose bytes had been seen on the same interface.
    pub retransmits: u64,
    /// Segments that repeated bytes with other content.
    pub conflicts: u64,
    /// Segments of no configured endpoint, or too far ahead to be of the connection.
    pub stray_segments: u64,
    /// Response bytes that came when no request was known to be outstanding, and were not judged.
    pub unassigned_bytes: u64,
}
