//! Frames put on an interface as they are, through a packet socket.

use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// A TCP segment in an IPv4 packet from 127.0.0.1:`source_port` to 127.0.0.1:`port`.
pub(crate) struct Frame {
    pub(crate) port: u16,
    pub(crate) source_port: u16,
    pub(crate) seq: u32,
    pub(crate) flags: u8,
    pub(crate) payload: Vec<u8>,
    /// The 13 bits of the fragment offset.
    pub(crate) fragment_offset: u16,
    /// In bytes of type 0x8100 after the addresses: a tag that travels in the packet.
    pub(crate) tagged: bool,
}

impl Frame {
    /// Without padding; checksums are left 0, since capture comes before they are looked at.
    fn bytes(&self) -> Vec<u8> {
        let mut frame = vec![0; 12];
        if self.tagged {
            frame.extend([0x81, 0x00, 0x00, 0x05]);
        }
        frame.extend([0x08, 0x00]);
        let total = u16::try_from(40 + self.payload.len()).unwrap();
        frame.extend([0x45, 0]);
        frame.extend(total.to_be_bytes());
        frame.extend([0, 1]);
        frame.extend(self.fragment_offset.to_be_bytes());
        frame.extend([64, 6, 0, 0]);
        frame.extend(Ipv4Addr::LOCALHOST.octets());
        frame.extend(Ipv4Addr::LOCALHOST.octets());
        frame.extend(self.source_port.to_be_bytes());
        frame.extend(self.port.to_be_bytes());
        frame.extend(self.seq.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend([0x50, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
        frame.extend(&self.payload);
        frame
    }

    /// Sends it on `lo`, padded to Ethernet's 60 bytes.
    pub(crate) fn send(&self) {
        self.send_on("lo");
    }

    /// Sends it on an interface of this thread's network namespace.
    pub(crate) fn send_on(&self, interface: &str) {
        let mut frame = self.bytes();
        frame.resize(frame.len().max(60), 0xee);
        // SAFETY: the call has no preconditions.
        let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
        assert!(raw >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: a descriptor that was just made and that nobody else owns.
        let socket = unsafe { OwnedFd::from_raw_fd(raw) };
        // SAFETY: all fields are integers, for which zero is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = u16::try_from(libc::AF_PACKET).unwrap();
        address.sll_ifindex =
            i32::try_from(nix::net::if_::if_nametoindex(interface).unwrap()).unwrap();
        // SAFETY: buffer and address are valid for the lengths given.
        let sent = unsafe {
            libc::sendto(
                socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const address).cast(),
                u32::try_from(size_of_val(&address)).unwrap(),
            )
        };
        assert_eq!(usize::try_from(sent).ok(), Some(frame.len()));
    }
}
