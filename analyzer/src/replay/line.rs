//! The socket under requests: opened for one, and kept for the next where the run allows it.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};

use socket2::{Domain, Protocol, Socket, Type};

use super::config::Tuning;
use super::receive::{enable_queue_length, enable_stamps};

/// One connection of the client.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) socket: Socket,
    /// Number among the run's connections, from 0.
    pub(super) id: u64,
    /// Requests that it was taken for, the present one included.
    pub(super) requests: u64,
}

impl Line {
    /// Begins to connect; `number` is asked for once there is a socket.
    pub(super) fn open(
        address: SocketAddr,
        tuning: Tuning,
        number: impl FnOnce() -> u64,
    ) -> io::Result<Self> {
        let socket = connect(address, tuning)?;
        Ok(Self { socket, id: number(), requests: 1 })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Neither closed by the peer nor with bytes that nobody asked for. The event loop may not have come to
    /// the peer's close yet, so this asks the kernel.
    pub(super) fn quiet(&self) -> bool {
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        let peeked = self.socket.recv_with_flags(&mut [MaybeUninit::uninit()], flags);
        matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

fn connect(address: SocketAddr, tuning: Tuning) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM.nonblocking().cloexec(),
        Some(Protocol::TCP),
    )?;
    socket.set_tcp_nodelay(true)?;
    if !tuning.clock_stamps {
        enable_stamps(socket.as_fd());
    }
    enable_queue_length(socket.as_fd());
    match socket.connect(&address.into()) {
        Ok(()) => Ok(socket),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}
