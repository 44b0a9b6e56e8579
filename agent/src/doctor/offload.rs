//! What an interface does to packets before anybody sees them, asked by ioctl (netdevice(7)).

use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;

/// Commands of `include/uapi/linux/ethtool.h`.
const GET_FLAGS: u32 = 0x25;
const GET_GRO: u32 = 0x2b;
/// `ETH_FLAG_LRO`.
const FLAG_LRO: u32 = 1 << 15;
/// `SIOCETHTOOL` of `include/uapi/linux/sockios.h`.
const ETHTOOL: libc::c_ulong = 0x8946;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

fn named(name: &str) -> Option<libc::ifreq> {
    // SAFETY: all zeroes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One byte stays zero, as the end of the name.
    let room = request.ifr_name.len().checked_sub(1)?;
    if name.len() > room {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    Some(request)
}

fn ethtool(socket: &UdpSocket, name: &str, command: u32) -> Option<u32> {
    let mut value = Value { command, data: 0 };
    let mut request = named(name)?;
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request names `value`, which lives through the call and is as long as the kernel's.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), ETHTOOL, &raw mut request) };
    (result == 0).then_some(value.data)
}

/// Whether GRO and LRO merge what an interface receives; `None` where the driver does not tell.
pub(super) fn merging(name: &str) -> (Option<bool>, Option<bool>) {
    let Ok(socket) = UdpSocket::bind("0.0.0.0:0") else { return (None, None) };
    let gro = ethtool(&socket, name, GET_GRO).map(|it| it != 0);
    let lro = ethtool(&socket, name, GET_FLAGS).map(|it| it & FLAG_LRO != 0);
    (gro, lro)
}

/// The largest packet of an interface, in bytes.
pub(super) fn mtu(name: &str) -> Option<u32> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    let mut request = named(name)?;
    // SAFETY: the request is a whole `ifreq`, which the kernel fills in.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) };
    if result != 0 {
        return None;
    }
    // SAFETY: after success the union holds the MTU.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    u32::try_from(mtu).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_an_mtu_and_what_does_not_exist_has_nothing() {
        assert!(mtu("lo").is_some_and(|mtu| mtu >= 1280), "{:?}", mtu("lo"));
        for name in ["nosuch0", "a-name-that-is-far-too-long", ""] {
            assert_eq!((mtu(name), merging(name)), (None, (None, None)), "{name}");
        }
    }
}
