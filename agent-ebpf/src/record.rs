//! Records of the ring buffer.

use core::mem::{offset_of, size_of};

use crate::endpoint::Address;

/// First byte of a [`SegmentHeader`].
pub const KIND_SEGMENT: u8 = 1;
/// First byte of a [`SocketRecord`].
pub const KIND_SOCKET: u8 = 2;
/// First byte of a [`SocketRecord`] that tells of a retransmission: both states are the socket's.
pub const KIND_RETRANSMIT: u8 = 3;

/// Bytes of payload in one piece. Constant copy lengths are what keeps the kernel's verifier from
/// exploring every possible length of every piece.
pub const PIECE_LEN: u32 = 4096;
/// Pieces copied of one packet: 64 KiB, the largest packet without BIG TCP. What a larger packet
/// carries beyond is not copied; its header still says how long it was.
pub const MAX_PIECES: u32 = 16;

/// What precedes the copied payload of a segment.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentHeader {
    /// [`KIND_SEGMENT`].
    pub kind: u8,
    /// TCP flag bits as on the wire.
    pub tcp_flags: u8,
    /// 1 when the source is the configured endpoint, 0 when the destination is.
    pub from_endpoint: u8,
    /// Zero.
    pub reserved: u8,
    /// Interface the packet was seen on.
    pub ifindex: u32,
    /// `bpf_ktime_get_ns`: `CLOCK_MONOTONIC` nanoseconds; the same for every piece of a packet.
    pub stamp_ns: u64,
    /// Number of this record among the segment records that its CPU tried to write, from 0.
    pub attempt: u64,
    /// Source address.
    pub source: Address,
    /// Destination address.
    pub destination: Address,
    /// Source port, host byte order.
    pub source_port: u16,
    /// Destination port, host byte order.
    pub destination_port: u16,
    /// CPU that ran the program.
    pub cpu: u32,
    /// TCP sequence number of the packet's first payload byte (of the SYN or FIN without payload).
    pub seq: u32,
    /// TCP acknowledgement number.
    pub ack: u32,
    /// Payload bytes of the packet on the wire.
    pub payload_len: u32,
    /// Offset of this record's payload in the packet's payload.
    pub piece_offset: u32,
    /// Payload bytes that follow this header and are valid.
    pub captured_len: u32,
    /// Zero.
    pub reserved2: u32,
}

/// Length of [`SegmentHeader`] in bytes.
pub const SEGMENT_HEADER_LEN: usize = size_of::<SegmentHeader>();

/// A change of state of a local TCP socket, or a segment that it sent again.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketRecord {
    /// [`KIND_SOCKET`] or [`KIND_RETRANSMIT`].
    pub kind: u8,
    /// State before (`include/net/tcp_states.h`).
    pub old_state: u8,
    /// State after.
    pub new_state: u8,
    /// 1 when the local address is the configured endpoint, 0 when the remote address is.
    pub at_endpoint: u8,
    /// CPU that ran the program.
    pub cpu: u32,
    /// `bpf_ktime_get_ns`: `CLOCK_MONOTONIC` nanoseconds.
    pub stamp_ns: u64,
    /// Number of this record among the socket records that its CPU tried to write, from 0.
    pub attempt: u64,
    /// Local address.
    pub local: Address,
    /// Remote address.
    pub remote: Address,
    /// Local port, host byte order; 0 before a connecting socket has one.
    pub local_port: u16,
    /// Remote port, host byte order.
    pub remote_port: u16,
    /// Zero.
    pub reserved: u32,
}

/// Length of [`SocketRecord`] in bytes.
pub const SOCKET_RECORD_LEN: usize = size_of::<SocketRecord>();

const _: () = {
    assert!(SEGMENT_HEADER_LEN == 88);
    assert!(offset_of!(SegmentHeader, stamp_ns) == 8);
    assert!(offset_of!(SegmentHeader, source) == 24);
    assert!(offset_of!(SegmentHeader, source_port) == 56);
    assert!(offset_of!(SegmentHeader, seq) == 64);
    assert!(offset_of!(SegmentHeader, captured_len) == 80);
    assert!(SOCKET_RECORD_LEN == 64);
    assert!(offset_of!(SocketRecord, stamp_ns) == 8);
    assert!(offset_of!(SocketRecord, local) == 24);
    assert!(offset_of!(SocketRecord, local_port) == 56);
};
