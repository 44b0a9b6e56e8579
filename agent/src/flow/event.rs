//! What flows tell.

use std::net::SocketAddr;

use protocol::http1::Framing;
use protocol::receipt::Receipt;
use protocol::{Nanos, StreamOutcome, TimelineRecord, TraceId};

use crate::prompt::Prefixes;

/// Number of a connection since the agent started; tuples are reused, numbers are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side that connects to the endpoint.
    Client,
    /// The configured endpoint.
    Endpoint,
}

/// Why nothing can be read on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opaque {
    /// A TLS record (RFC 8446, section 5.1).
    Tls,
    /// The connection preface of HTTP/2 (RFC 9113, section 3.4).
    Http2,
    /// CONNECT or 101: another protocol follows.
    Tunnel,
}

/// Everything known about one request once nothing more can come.
#[derive(Clone, Debug)]
pub struct FinishedExchange {
    /// Endpoint that it went to.
    pub endpoint: SocketAddr,
    /// Other side of the connection.
    pub peer: SocketAddr,
    /// The connection.
    pub connection: ConnectionId,
    /// Number of the request on its connection, from 0.
    pub index: u64,
    /// Correlation header.
    pub trace_id: Option<TraceId>,
    /// First byte of the request; `None` when it was not seen.
    pub request_first: Option<Nanos>,
    /// Last byte of the request; `None` when it was not seen.
    pub request_end: Option<Nanos>,
    /// Last repetition of request bytes before the response began.
    pub request_resent: Option<Nanos>,
    /// What the request's own id says of its delivery.
    pub request_receipt: Option<Receipt>,
    /// First sign of the request: what decides which windows it belongs to.
    pub seen: Nanos,
    /// Bytes of the request.
    pub request_bytes: u64,
    /// What was hashed of the prompt; `None` when nobody asked for it.
    pub prompt: Option<Prefixes>,
    /// The response; its framing is as decoded: [`FinishedExchange::framing`] is the verdict.
    pub response: TimelineRecord,
    /// Nothing can be read.
    pub opaque: Option<Opaque>,
    /// Bytes of a connection were assigned to this request by a resumption in the middle of a
    /// connection, or were repeated with other content: nothing can be called invalid.
    pub doubtful: bool,
    /// Evidence is missing or contradictory, so that there is no verdict.
    pub unknowable: bool,
    /// The client ended the connection before the response did.
    pub aborted: bool,
    /// Side that sent FIN or RST first.
    pub closed_by: Option<Side>,
    /// When the request was over.
    pub end: Option<Nanos>,
    /// Segments with payload of request and response, repetitions included; one that passed several
    /// interfaces counts once.
    pub segments: u64,
    /// Segments of the request that repeated bytes.
    pub request_retransmits: u64,
    /// Segments of the response that repeated bytes.
    pub response_retransmits: u64,
    /// Times that this host's own TCP sent a segment of the request again, as its kernel reported.
    pub request_socket_retransmits: u64,
    /// Times that this host's own TCP sent a segment of the response again, as its kernel reported.
    pub response_socket_retransmits: u64,
    /// From SYN to SYN-ACK as seen here, in nanoseconds; `None` when one was not seen, or repeated.
    pub handshake_rtt_ns: Option<u64>,
    /// From SYN-ACK to the client's next segment as seen here, in nanoseconds.
    pub client_rtt_upper_bound_ns: Option<u64>,
    /// Older than the agent.
    pub adopted: bool,
    /// Interface that the connection was first seen on.
    pub ifindex: u32,
}

impl FinishedExchange {
    /// Verdict on the response's framing. Never invalid on doubtful evidence.
    #[must_use]
    pub fn framing(&self) -> Framing {
        use protocol::http1::UnknownCause;
        let lost = Framing::Unknown { why: UnknownCause::LostBytes };
        match self.response.framing {
            _ if self.opaque.is_some() => Framing::Unknown { why: UnknownCause::Opaque },
            _ if self.unknowable => lost,
            Framing::Invalid { .. } if self.doubtful => lost,
            // Without a head nothing proves that the response's first byte was looked for in the
            // right place.
            Framing::Incomplete if self.doubtful && self.response.head.is_none() => lost,
            framing => framing,
        }
    }

    /// The class that the shared classifier gives the response's evidence.
    #[must_use]
    pub fn stream_outcome(&self) -> StreamOutcome {
        let framing = self.framing();
        if framing == self.response.framing {
            return StreamOutcome::of(&self.response);
        }
        StreamOutcome::of(&TimelineRecord { framing, ..self.response.clone() })
    }
}

/// Something that happened on a flow.
#[derive(Clone, Debug)]
pub enum FlowEvent {
    /// A connection to an endpoint was opened, or an older one was first seen.
    ConnectionOpened {
        /// The endpoint.
        endpoint: SocketAddr,
        /// When.
        stamp: Nanos,
    },
    /// A connection is over.
    ConnectionClosed {
        /// The endpoint.
        endpoint: SocketAddr,
        /// When.
        stamp: Nanos,
    },
    /// The first byte of a request.
    RequestStarted {
        /// The endpoint.
        endpoint: SocketAddr,
        /// When.
        stamp: Nanos,
    },
    /// The response's framing ended, or the connection did.
    RequestEnded {
        /// The endpoint.
        endpoint: SocketAddr,
        /// When.
        stamp: Nanos,
    },
    /// Nothing more can come of a request.
    Finished(Box<FinishedExchange>),
}
