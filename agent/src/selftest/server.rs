//! The served side: one thread per connection, each plays its script.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use protocol::Nanos;
use protocol::cases::{Case, End};

use super::{PATIENCE, Traffic};
use crate::clock::{Clock as _, Monotonic};

/// Holds every answer back until all requests are in flight.
#[derive(Default)]
pub(super) struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

/// Opens a gate when it goes.
pub(super) struct Opener<'a>(&'a Gate);

impl Drop for Opener<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl Gate {
    /// Lets everybody through, now and later.
    pub(super) fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }

    /// Opens the gate at the end of its own life.
    pub(super) fn opener(&self) -> Opener<'_> {
        Opener(self)
    }

    fn pass(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open {
            open = self.opened.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What the server did, on the clock of the kernel's stamps.
pub(super) struct Served {
    /// Number of the talk.
    pub(super) number: usize,
    /// The whole request had been read.
    pub(super) request_read: Nanos,
    /// Before the first byte of the response was written.
    pub(super) first_write: Nanos,
}

/// Accepts `count` connections and serves each in a thread of its own.
pub(super) fn start<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    listener: &'env TcpListener,
    count: usize,
    traffic: &'env Traffic,
    gate: &'scope Gate,
) -> io::Result<()> {
    // A client that never comes must not hold the test up for ever.
    listener.set_nonblocking(true)?;
    let accept = move || {
        let deadline = Instant::now() + PATIENCE;
        let mut accepted = 0;
        while accepted < count && Instant::now() < deadline {
            let Ok((stream, _)) = listener.accept() else {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            };
            accepted += 1;
            let talk = move || drop(serve(stream, traffic, gate));
            if std::thread::Builder::new().spawn_scoped(scope, talk).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().spawn_scoped(scope, accept).map(drop)
}

fn serve(mut stream: TcpStream, traffic: &Traffic, gate: &Gate) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let Some(number) = read_request(&mut stream)? else { return Ok(()) };
    let request_read = Monotonic.now();
    let Some(talk) = traffic.talks.get(number) else { return Ok(()) };
    gate.pass();
    let served = Served { number, request_read, first_write: Monotonic.now() };
    traffic.served.lock().unwrap_or_else(PoisonError::into_inner).push(served);
    play(stream, &talk.case)
}

/// Reads a whole request; answers the number in its path.
fn read_request(stream: &mut TcpStream) -> io::Result<Option<usize>> {
    let mut request = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        let taken = stream.read(&mut buffer)?;
        if taken == 0 {
            return Ok(None);
        }
        request.extend_from_slice(buffer.get(..taken).unwrap_or_default());
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.rsplit_once("Content-Length: ").and_then(|(_, it)| it.parse().ok());
            if body.len() >= length.unwrap_or(usize::MAX) {
                let path = head.split(' ').nth(1).and_then(|path| path.strip_prefix('/'));
                return Ok(path.and_then(|path| path.parse().ok()));
            }
        }
    }
}

/// Plays a script at its own pace.
fn play(mut stream: TcpStream, case: &Case) -> io::Result<()> {
    let start = Instant::now();
    for step in &case.steps {
        wait_until(start, step.at_ms);
        stream.write_all(&step.bytes)?;
    }
    match case.end {
        End::KeepAlive => {
            // The client closes first.
            stream.read(&mut [0; 1]).map(drop)
        }
        End::Close(at_ms) => {
            wait_until(start, at_ms);
            stream.shutdown(std::net::Shutdown::Write)?;
            stream.read(&mut [0; 1]).map(drop)
        }
        End::Reset(at_ms) => {
            wait_until(start, at_ms);
            nix::sys::socket::setsockopt(
                &stream,
                nix::sys::socket::sockopt::Linger,
                &libc::linger { l_onoff: 1, l_linger: 0 },
            )?;
            Ok(())
        }
    }
}

fn wait_until(start: Instant, at_ms: u64) {
    std::thread::sleep(Duration::from_millis(at_ms).saturating_sub(start.elapsed()));
}
