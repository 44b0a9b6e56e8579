//! Connections to backends: made, kept after an answer, and found stale.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use socket2::SockRef;
use tokio::net::TcpStream;

use super::route::Endpoint;

/// Idle connections kept per endpoint; more are closed.
const MAX_IDLE: usize = 1_024;

/// Connections of one endpoint that wait for a request, the most recently used last.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<TcpStream>>);

impl Pool {
    /// The most recently used one that the backend has not closed.
    pub(super) fn take(&self) -> Option<TcpStream> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(stream) = idle.pop() {
            if quiet(&stream) {
                return Some(stream);
            }
        }
        None
    }

    pub(super) fn put(&self, stream: TcpStream) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push(stream);
        }
    }
}

/// Opens a connection and counts it.
pub(super) async fn open(endpoint: &Endpoint) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(endpoint.addr).await?;
    stream.set_nodelay(true)?;
    endpoint.connections.fetch_add(1, Relaxed);
    Ok(stream)
}

/// Neither closed nor with bytes that nobody asked for. Asks the kernel, because a close that the event
/// loop has not seen yet would cost a request.
pub(super) fn quiet(stream: &TcpStream) -> bool {
    let mut byte = [std::mem::MaybeUninit::uninit()];
    let peeked =
        SockRef::from(stream).recv_with_flags(&mut byte, libc::MSG_PEEK | libc::MSG_DONTWAIT);
    matches!(peeked, Err(e) if e.kind() == io::ErrorKind::WouldBlock)
}
