//! One netlink socket: it belongs for good to the network namespace in which it was opened.

use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike as _};

use super::wire::{DiagSocket, Dump, Family, Progress, messages, request};
use super::{Detail, DiagError};

/// The kernel fills what it is given, up to 32 KiB a datagram (`netlink_dump`).
const DATAGRAM: usize = 64 * 1024;
/// The kernel answers a dump while it is asked: a wait this long means it never will.
const PATIENCE_S: i64 = 5;
const ATTEMPTS: usize = 3;

/// A `SOCK_DIAG` socket.
#[derive(Debug)]
pub(super) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

fn refused(call: &'static str, source: nix::Error) -> DiagError {
    let mend = match source {
        nix::Error::ENOENT | nix::Error::EINVAL | nix::Error::EPROTONOSUPPORT => {
            "load the kernel's module: modprobe tcp_diag (CONFIG_INET_TCP_DIAG)"
        }
        nix::Error::EMFILE | nix::Error::ENFILE => "raise the limit of open files (ulimit -n)",
        nix::Error::EACCES | nix::Error::EPERM => "allow netlink sockets to the agent",
        _ => "try `ss -t`, which asks the kernel the same",
    };
    DiagError::System { call, source: source.into(), mend }
}

impl Netlink {
    /// Opens a socket in the network namespace of this thread.
    pub(super) fn open() -> Result<Self, DiagError> {
        let opened = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkSockDiag,
        );
        let socket = opened.map_err(|error| refused("socket(NETLINK_SOCK_DIAG)", error))?;
        setsockopt(&socket, ReceiveTimeout, &TimeVal::seconds(PATIENCE_S))
            .map_err(|error| refused("SO_RCVTIMEO on the netlink socket", error))?;
        Ok(Self { socket, sequence: 0, buffer: vec![0; DATAGRAM] })
    }

    /// The TCP sockets with one of `ports` as their local port. Each dump walks the kernel's whole
    /// table of connections, whatever it filters by: one for each family must do for all ports.
    pub(super) fn sockets(
        &mut self,
        ports: &[u16],
        detail: Detail,
    ) -> Result<Vec<DiagSocket>, DiagError> {
        if ports.is_empty() {
            return Ok(Vec::new());
        }
        let mut sockets = self.dump(Family::V4, ports, detail)?;
        sockets.extend(self.dump(Family::V6, ports, detail)?);
        Ok(sockets)
    }

    fn dump(
        &mut self,
        family: Family,
        ports: &[u16],
        detail: Detail,
    ) -> Result<Vec<DiagSocket>, DiagError> {
        for _ in 0..ATTEMPTS {
            if let Some(sockets) = self.attempt(family, ports, detail)? {
                return Ok(sockets);
            }
        }
        Err(DiagError::Interrupted)
    }

    /// `None` when the list changed while it was read.
    fn attempt(
        &mut self,
        family: Family,
        ports: &[u16],
        detail: Detail,
    ) -> Result<Option<Vec<DiagSocket>>, DiagError> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(family, ports, detail, self.sequence);
        send(self.socket.as_raw_fd(), &request, MsgFlags::empty())
            .map_err(|error| refused("asking inet_diag", error))?;
        let mut dump = Dump::default();
        loop {
            let received = match recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::empty())
            {
                Err(nix::Error::EINTR) => continue,
                other => other.map_err(|error| refused("reading inet_diag's answer", error))?,
            };
            let datagram = self.buffer.get(..received).unwrap_or_default();
            match messages(datagram, self.sequence, &mut dump)? {
                Progress::More => {}
                Progress::Done => return Ok((!dump.interrupted).then_some(dump.sockets)),
                Progress::Refused(errno) => {
                    return Err(refused("inet_diag", nix::Error::from_raw(errno)));
                }
            }
        }
    }
}
