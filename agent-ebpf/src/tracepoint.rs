//! Layout of the tracepoint `sock:inet_sock_set_state` that the kernel program was compiled for.
//!
//! The layout is no kernel promise, and a verifier-accepted load needs constant offsets: user space
//! compares these with the running kernel's `format` file before it attaches the program.
//! Source: `include/trace/events/sock.h`; `protocol` grew from 8 to 16 bits in Linux 5.6.

/// A field of a tracepoint record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name in the `format` file.
    pub name: &'static str,
    /// Offset in the record, in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
}

const fn field(name: &'static str, offset: usize, size: usize) -> Field {
    Field { name, offset, size }
}

/// State before.
pub const OLD_STATE: Field = field("oldstate", 16, 4);
/// State after.
pub const NEW_STATE: Field = field("newstate", 20, 4);
/// Local port, host byte order.
pub const SOURCE_PORT: Field = field("sport", 24, 2);
/// Remote port, host byte order.
pub const DESTINATION_PORT: Field = field("dport", 26, 2);
/// Protocol number.
pub const PROTOCOL: Field = field("protocol", 30, 2);
/// Local address as IPv6, IPv4-mapped for IPv4.
pub const SOURCE_ADDRESS: Field = field("saddr_v6", 40, 16);
/// Remote address as IPv6, IPv4-mapped for IPv4.
pub const DESTINATION_ADDRESS: Field = field("daddr_v6", 56, 16);

/// Every field that the program reads.
pub const FIELDS: [Field; 7] = [
    OLD_STATE,
    NEW_STATE,
    SOURCE_PORT,
    DESTINATION_PORT,
    PROTOCOL,
    SOURCE_ADDRESS,
    DESTINATION_ADDRESS,
];

/// Category of the tracepoint.
pub const CATEGORY: &str = "sock";
/// Name of the tracepoint.
pub const NAME: &str = "inet_sock_set_state";
