//! Keys and values of the maps that say what is looked at.

use core::mem::size_of;

/// An address and port that user space configured.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointKey {
    /// Address; IPv4 as IPv4-mapped IPv6.
    pub address: [u8; 16],
    /// Port, host byte order.
    pub port: u16,
    /// Zero: map keys are compared byte by byte.
    pub reserved: u16,
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
    pub ifindex: u32,
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
/// Connections whose request budget is remembered. One that is evicted starts with a full budget
/// again: more is copied, nothing is lost.
pub const MAX_BUDGET_FLOWS: u32 = 65_536;

/// Length of [`EndpointKey`] in bytes.
pub const ENDPOINT_KEY_LEN: usize = size_of::<EndpointKey>();

const _: () = {
    assert!(ENDPOINT_KEY_LEN == 20);
    assert!(size_of::<FlowKey>() == 44);
};
