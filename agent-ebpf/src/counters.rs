//! Counters that the kernel programs keep: arrays of `u64`, one per CPU, indexed by these slots.

/// Segment records that were tried.
pub const SEGMENTS_ATTEMPTED: usize = 0;
/// Segment records that found no room in the ring.
pub const SEGMENTS_FAILED: usize = 1;
/// Packets of configured endpoints.
pub const ENDPOINT_PACKETS: usize = 2;
/// Packets whose ports could not be read.
pub const UNPARSED_PACKETS: usize = 3;
/// Pieces whose bytes the kernel refused to copy out of the packet: the record says 0 captured.
pub const UNREADABLE_PIECES: usize = 4;
/// Number of slots of the packet programs.
pub const PACKET_SLOTS: usize = 5;

/// Socket records that were tried.
pub const SOCKETS_ATTEMPTED: usize = 0;
/// Socket records that found no room in the ring.
pub const SOCKETS_FAILED: usize = 1;
/// Number of slots of the tracepoint program, apart from the packet programs' because a packet can
/// interrupt it on its CPU.
pub const SOCKET_SLOTS: usize = 2;

/// Times the ingress program ran on an interface.
pub const INGRESS_PACKETS: usize = 0;
/// Times the egress program ran on an interface.
pub const EGRESS_PACKETS: usize = 1;
/// Wire packets behind [`INGRESS_PACKETS`]: a merged packet counts its segments.
pub const INGRESS_FRAMES: usize = 2;
/// Wire packets behind [`EGRESS_PACKETS`].
pub const EGRESS_FRAMES: usize = 3;
/// Number of slots per interface.
pub const INTERFACE_SLOTS: usize = 4;

/// Counters of the packet programs on one CPU.
pub type PacketCounters = [u64; PACKET_SLOTS];
/// Counters of the tracepoint program on one CPU.
pub type SocketCounters = [u64; SOCKET_SLOTS];
/// Counters of one interface on one CPU.
pub type InterfaceCounters = [u64; INTERFACE_SLOTS];
