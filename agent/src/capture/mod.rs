//! Where segments come from: one trait, so that live eBPF, files and tests feed the same flows.

pub mod foreign;
pub mod pcap;
pub mod tcx;

use std::net::SocketAddr;
use std::time::Duration;

use protocol::Nanos;

/// One look at a TCP segment of a configured endpoint.
///
/// A segment larger than the kernel side's piece arrives as several `Segment`s of the same `seq`,
/// one per piece, in order of `piece_offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// When the kernel program saw the packet.
    pub stamp: Nanos,
    /// Interface index; the same bytes on another interface are a second view, not a retransmit.
    pub ifindex: u32,
    /// Sender of the segment (IPv4-mapped IPv6 addresses are already plain IPv4).
    pub source: SocketAddr,
    /// Receiver of the segment.
    pub destination: SocketAddr,
    /// True when the segment comes from the configured endpoint (a response), false towards it.
    pub from_endpoint: bool,
    /// TCP sequence number of the first payload byte of the whole segment.
    pub seq: u32,
    /// TCP acknowledgement number.
    pub ack: u32,
    /// TCP flags.
    pub flags: TcpFlags,
    /// Payload bytes on the wire, whether copied or not.
    pub payload_len: u32,
    /// Offset of `payload` inside the segment's payload.
    pub piece_offset: u32,
    /// The bytes copied; empty for a header-only record. Bytes beyond the copied ones are unknown.
    pub payload: &'a [u8],
    /// CPU that ran the program.
    pub cpu: u32,
}

/// TCP flag bits as on the wire (RFC 9293, section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    const FIN: u8 = 0x01;
    const SYN: u8 = 0x02;
    const RST: u8 = 0x04;
    const ACK: u8 = 0x10;

    /// The sender has no more data.
    #[must_use]
    pub const fn fin(self) -> bool {
        self.0 & Self::FIN != 0
    }

    /// The sender opens the connection.
    #[must_use]
    pub const fn syn(self) -> bool {
        self.0 & Self::SYN != 0
    }

    /// The sender aborts the connection.
    #[must_use]
    pub const fn rst(self) -> bool {
        self.0 & Self::RST != 0
    }

    /// The acknowledgement number is valid.
    #[must_use]
    pub const fn ack(self) -> bool {
        self.0 & Self::ACK != 0
    }
}

/// A change of TCP state of a local socket (`sock:inet_sock_set_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketTransition {
    /// When the tracepoint fired.
    pub stamp: Nanos,
    /// Local address of the socket.
    pub local: SocketAddr,
    /// Remote address of the socket.
    pub remote: SocketAddr,
    /// State before (`TCP_ESTABLISHED` is 1; see `include/net/tcp_states.h`).
    pub old_state: u8,
    /// State after.
    pub new_state: u8,
    /// True when the local address is the configured endpoint (server side of the connection).
    pub at_endpoint: bool,
}

/// A local socket sent a segment again (`tcp:tcp_retransmit_skb`): exact where the socket is on this
/// host, one per call, however many segments a timeout sends again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmit {
    /// When the tracepoint fired.
    pub stamp: Nanos,
    /// Sender.
    pub source: SocketAddr,
    /// Receiver.
    pub destination: SocketAddr,
    /// True when the configured endpoint sent it (a response), false when its peer did.
    pub from_endpoint: bool,
}

/// What a source hands to the flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureEvent<'a> {
    /// A segment with payload, or one that opens, ends or aborts a connection.
    Segment(Segment<'a>),
    /// A socket changed its state.
    Socket(SocketTransition),
    /// A local socket sent a segment again.
    Retransmit(Retransmit),
}

/// Counters of one event class; `attempted - failed == consumed` once the source is drained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ClassCounters {
    /// Records that the kernel side tried to write.
    pub attempted: u64,
    /// Records that found no room.
    pub failed: u64,
    /// Records that user space took out.
    pub consumed: u64,
}

/// What a source has counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct CaptureCounters {
    /// Records of segments.
    pub segments: ClassCounters,
    /// Records of socket state changes.
    pub sockets: ClassCounters,
    /// Packets of configured endpoints that the programs looked at.
    pub endpoint_packets: u64,
    /// All packets that the programs looked at.
    pub packets: u64,
    /// Packets that could not be parsed as ports (fragments, IPv6 extension headers).
    pub unparsed_packets: u64,
}

/// A source could not deliver.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The operating system refused a call.
    #[error("{call}: {source}; {mend}")]
    System {
        /// What was tried.
        call: &'static str,
        /// Why it was refused.
        source: std::io::Error,
        /// What the operator can do about it.
        mend: &'static str,
    },
    /// The kernel programs could not be loaded or attached.
    #[error("{what}; {mend}")]
    Program {
        /// What failed, with the kernel's reason.
        what: String,
        /// What the operator can do about it.
        mend: String,
    },
}

/// A place segments come from.
pub trait CaptureSource: Send {
    /// Hands every record that is ready to `sink`, after waiting at most `timeout` for the first.
    /// Returns the number of records handed over.
    ///
    /// # Errors
    /// When the source is broken; records already handed over stay valid.
    fn poll(
        &mut self,
        timeout: Duration,
        sink: &mut dyn FnMut(CaptureEvent<'_>),
    ) -> Result<usize, CaptureError>;

    /// Hands over every record that was written before this call, without waiting for later ones.
    ///
    /// # Errors
    /// As [`CaptureSource::poll`].
    fn drain(&mut self, sink: &mut dyn FnMut(CaptureEvent<'_>)) -> Result<usize, CaptureError>;

    /// Counters since the source was opened.
    ///
    /// # Errors
    /// When the kernel refuses to read a counter.
    fn counters(&mut self) -> Result<CaptureCounters, CaptureError>;

    /// `tcx`, `file`, `scripted`: for status and records.
    fn name(&self) -> &'static str;
}
