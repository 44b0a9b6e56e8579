//! Layouts of the tracepoints that the kernel programs were compiled for.
//!
//! A layout is no kernel promise, and a verifier-accepted load needs constant offsets: user space
//! compares these with the running kernel's `format` files before it attaches the programs.

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

/// A tracepoint, and what a program reads of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// Category.
    pub category: &'static str,
    /// Name.
    pub name: &'static str,
    /// Every field that the program reads.
    pub fields: &'static [Field],
}

const fn field(name: &'static str, offset: usize, size: usize) -> Field {
    Field { name, offset, size }
}

/// `sock:inet_sock_set_state`. Source: `include/trace/events/sock.h`; `protocol` grew from 8 to 16
/// bits in Linux 5.6.
pub mod socket_state {
    use super::{Field, Tracepoint, field};

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

    /// The whole.
    pub const TRACEPOINT: Tracepoint = Tracepoint {
        category: "sock",
        name: "inet_sock_set_state",
        fields: &[
            OLD_STATE,
            NEW_STATE,
            SOURCE_PORT,
            DESTINATION_PORT,
            PROTOCOL,
            SOURCE_ADDRESS,
            DESTINATION_ADDRESS,
        ],
    };
}

/// `tcp:tcp_retransmit_skb`. Source: `include/trace/events/tcp.h`.
pub mod retransmit {
    use super::{Field, Tracepoint, field};

    /// The socket's state.
    pub const STATE: Field = field("state", 24, 4);
    /// Local port, host byte order.
    pub const SOURCE_PORT: Field = field("sport", 28, 2);
    /// Remote port, host byte order.
    pub const DESTINATION_PORT: Field = field("dport", 30, 2);
    /// Local address as IPv6, IPv4-mapped for IPv4.
    pub const SOURCE_ADDRESS: Field = field("saddr_v6", 42, 16);
    /// Remote address as IPv6, IPv4-mapped for IPv4.
    pub const DESTINATION_ADDRESS: Field = field("daddr_v6", 58, 16);

    /// The whole.
    pub const TRACEPOINT: Tracepoint = Tracepoint {
        category: "tcp",
        name: "tcp_retransmit_skb",
        fields: &[STATE, SOURCE_PORT, DESTINATION_PORT, SOURCE_ADDRESS, DESTINATION_ADDRESS],
    };
}
