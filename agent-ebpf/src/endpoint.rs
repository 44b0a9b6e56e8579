//! Keys and values of the maps that say what is looked at.

use core::mem::size_of;

/// An IPv6 address, or an IPv4 one in IPv4-mapped form (RFC 4291, section 2.5.5.2), in network byte
/// order: words, so that it is copied eight bytes at a time.
pub type Address = [u64; 2];

/// An address and port that user space configured.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointKey {
    /// Its address.
    pub address: Address,
    /// Port, host byte order: a whole word, since the compiler clears padding by calling `memset`.
    pub port: u64,
}

impl EndpointKey {
    /// The key of an address and port.
    #[must_use]
    #[inline(always)]
    pub const fn new(address: Address, port: u16) -> Self {
        Self { address, port: port as u64 }
    }
}

/// A connection as one interface sees it, for the request budget.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowKey {
    /// The configured endpoint.
    pub endpoint: EndpointKey,
    /// Its peer.
    pub peer: EndpointKey,
    /// The same packet on another interface is a second view with a budget of its own.
    pub ifindex: u64,
}

/// Endpoints that can be watched at once.
pub const MAX_ENDPOINTS: u32 = 1024;
/// Interfaces that can be watched at once.
pub const MAX_INTERFACES: u32 = 64;
/// Entries of the table of interface counters: a power of two, many times [`MAX_INTERFACES`].
pub const INTERFACE_TABLE: u32 = 1024;

/// Entry of an interface in the table of counters. User space picks an odd `factor` with which no two
/// watched interfaces share an entry: every packet then costs an array access, not a hash look-up.
#[must_use]
pub const fn interface_slot(ifindex: u32, factor: u32) -> u32 {
    ifindex.wrapping_mul(factor) >> (u32::BITS - INTERFACE_TABLE.trailing_zeros())
}
/// One bit for each port. 8 KiB stay in a CPU's cache, where the ephemeral ports of thousands of
/// clients would each ask for a line of a larger table.
pub type PortSet = [u64; 1024];

/// Word of a [`PortSet`] that holds `port`, and the port's bit in it.
#[must_use]
pub const fn port_bit(port: u16) -> (usize, u64) {
    ((port >> 6) as usize, 1 << (port & 63))
}

/// What user space may change while the programs run.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Payload bytes copied of each request.
    pub request_bytes: u32,
}

/// What was copied of the request that a connection is sending.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestBudget {
    /// What the client had acknowledged when the request began: once the number moves, the endpoint
    /// has answered, and what the client sends then is another request.
    pub ack: u32,
    /// Bytes copied.
    pub copied: u32,
}

/// Connections whose request budget is remembered. One that is evicted starts with a full budget
/// again: more is copied, nothing is lost.
pub const MAX_BUDGET_FLOWS: u32 = 65_536;

/// Length of [`EndpointKey`] in bytes.
pub const ENDPOINT_KEY_LEN: usize = size_of::<EndpointKey>();

const _: () = {
    assert!(ENDPOINT_KEY_LEN == 24);
    assert!(size_of::<FlowKey>() == 56);
};
