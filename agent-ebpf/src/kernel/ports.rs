//! The first question to every packet and socket: is a port of it some endpoint's?

use agent_ebpf::endpoint::port_bit;

use super::maps::PORTS;

/// Whether some endpoint has this port.
#[inline(always)]
pub(super) fn is_endpoint_port(port: u16) -> bool {
    let Some(ports) = PORTS.get(0) else { return false };
    let (word, bit) = port_bit(port);
    ports[word] & bit != 0
}
