//! The client's side: one thread per request.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::PoisonError;

use protocol::Nanos;
use protocol::cases::End;

use super::plan::Talk;
use super::{PATIENCE, Traffic};
use crate::clock::{Clock as _, Monotonic};

/// What the client did, on the clock of the kernel's stamps.
pub(super) struct Sent {
    /// Number of the talk.
    pub(super) number: usize,
    /// Before the first byte of the request was written.
    pub(super) first_write: Nanos,
    /// The first byte of the response had been read.
    pub(super) first_read: Nanos,
    /// Everything had been read.
    pub(super) end: Nanos,
    /// Bytes read.
    pub(super) received: usize,
}

/// Performs a talk; what fails leaves no `Sent`, and is missed when observations are compared.
pub(super) fn perform(talk: &Talk, traffic: &Traffic) {
    if let Ok(sent) = try_perform(talk) {
        traffic.sent.lock().unwrap_or_else(PoisonError::into_inner).push(sent);
    }
}

fn try_perform(talk: &Talk) -> io::Result<Sent> {
    let mut stream = TcpStream::connect(talk.endpoint)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let first_write = Monotonic.now();
    stream.write_all(&talk.request)?;
    let mut buffer = [0; 16 * 1024];
    let mut received = stream.read(&mut buffer)?;
    let first_read = Monotonic.now();
    let whole: usize = talk.case.steps.iter().map(|step| step.bytes.len()).sum();
    // Who closes first is part of the script.
    let server_ends = talk.case.end != End::KeepAlive;
    while (server_ends || received < whole)
        && let Ok(taken @ 1..) = stream.read(&mut buffer)
    {
        received += taken;
    }
    Ok(Sent { number: talk.number, first_write, first_read, end: Monotonic.now(), received })
}

/// Traffic that nobody asked the agent to watch.
pub(super) fn foreign() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    client.write_all(b"POST /0 HTTP/1.1\r\nContent-Length: 0\r\n\r\n")?;
    server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
    client.read(&mut [0; 64]).map(drop)
}
