//! TCP sockets as the kernel lists them (inet_diag over netlink `SOCK_DIAG`): the second witness
//! beside the tracepoint, and the only one for connections that are older than the agent.

mod namespaces;
mod netlink;
mod tables;
mod wire;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

pub use namespaces::preflight;
pub use tables::{NamespaceView, NetlinkTables};
pub use wire::dumped_sockets;

/// What inet_diag can tell about a connection's path (`struct tcp_info`, `include/uapi/linux/tcp.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Its mean deviation.
    pub rttvar: Duration,
    /// Segments retransmitted since the connection began.
    pub total_retrans: u32,
}

/// A connection's socket on the side of a configured endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionSocket {
    /// The endpoint (IPv4-mapped IPv6 addresses are already plain IPv4).
    pub local: SocketAddr,
    /// The other side.
    pub remote: SocketAddr,
    /// TCP state (`include/net/tcp_states.h`).
    pub state: u8,
    /// The kernel's number of the socket, unique since the host was started.
    pub cookie: u64,
    /// State of the path, where it was asked for.
    pub info: Option<TcpInfo>,
}

/// Number of a network namespace: its inode, as `readlink /proc/PID/ns/net` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct NamespaceId(pub u64);

/// The sockets of configured endpoints in one network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceSockets {
    /// The namespace.
    pub namespace: NamespaceId,
    /// Endpoints that a listening socket serves here.
    pub listening: BTreeSet<SocketAddr>,
    /// Their connections, server side, in a state in which the connection exists.
    pub connections: Vec<ConnectionSocket>,
}

/// Whether to ask for [`ConnectionSocket::info`]: it makes every message four times as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Addresses, state and cookie.
    Identity,
    /// The state of the path as well.
    Path,
}

/// Sockets could not be listed.
#[derive(Debug, thiserror::Error)]
pub enum DiagError {
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
    /// The thread is in a network namespace that is not the agent's.
    #[error("setns back to the agent's own network namespace: {source}; start the agent again")]
    Stranded {
        /// Why it could not come back.
        source: std::io::Error,
    },
    /// The kernel's answer has no known form.
    #[error("inet_diag: {0}; report this kernel's version")]
    Malformed(&'static str),
    /// The list changed under the kernel's hands at every attempt.
    #[error("inet_diag: every dump was interrupted; the next one may succeed")]
    Interrupted,
}

/// Where lists of sockets come from; tests bring their own.
pub trait SocketTables: Send {
    /// Lists the sockets of every configured endpoint, one entry per network namespace.
    ///
    /// A dump is no instant: each socket is looked at at some moment during the call.
    ///
    /// # Errors
    /// When the kernel refuses; a namespace that fails makes the whole dump fail, since a part would
    /// look like connections that have ended.
    fn dump(&mut self, detail: Detail) -> Result<Vec<NamespaceSockets>, DiagError>;

    /// Lists the sockets of these endpoints from now on, in the namespaces that are open.
    fn set_endpoints(&mut self, endpoints: &[SocketAddr]);
}

#[cfg(test)]
mod tests;
