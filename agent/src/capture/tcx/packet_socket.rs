//! The fallback: a packet socket (packet(7)) whose filter is the program. The filter keeps nothing
//! of any packet, so that nothing is ever queued and no packet is held up.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use aya::programs::SocketFilter;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::config::Interface;
use super::load::program_error;
use super::preflight::PRIVILEGE_MEND;
use crate::capture::CaptureError;

fn refused(call: &'static str, source: io::Error) -> CaptureError {
    CaptureError::System { call, source, mend: PRIVILEGE_MEND }
}

/// Every protocol, since only such sockets see what the host itself sends.
fn every_protocol() -> u16 {
    u16::try_from(libc::ETH_P_ALL).unwrap_or(0).to_be()
}

/// On loopback every packet passes twice, sent and received: once is enough, at half the cost.
fn ignore_sent(socket: &OwnedFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is an integer of the length given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            (&raw const on).cast(),
            libc::socklen_t::try_from(size_of_val(&on)).unwrap_or(0),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn bind(socket: &OwnedFd, ifindex: u32) -> io::Result<()> {
    // SAFETY: all fields are integers, for which zero is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).unwrap_or(0);
    address.sll_protocol = every_protocol();
    address.sll_ifindex = i32::try_from(ifindex).unwrap_or(0);
    // SAFETY: the address is valid for the length given.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            libc::socklen_t::try_from(size_of_val(&address)).unwrap_or(0),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A socket that runs `filter` over every packet of `interface` until it is closed.
pub(super) fn open(filter: &SocketFilter, interface: &Interface) -> Result<OwnedFd, CaptureError> {
    // Protocol 0: it receives nothing before the filter is in place.
    let socket = socket(AddressFamily::Packet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|error| refused("opening a packet socket", error.into()))?;
    filter
        .attach(&socket)
        .map_err(|error| program_error(&format!("attaching to {}", interface.name), &error))?;
    if interface.loopback {
        ignore_sent(&socket).map_err(|error| refused("PACKET_IGNORE_OUTGOING", error))?;
    }
    bind(&socket, interface.index)
        .map_err(|error| refused("binding a packet socket to its interface", error))?;
    Ok(socket)
}
