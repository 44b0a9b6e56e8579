//! Serves streams: every event is one write, due at a fixed interval after the one before.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::script::request;
use super::{Plan, Script, Shared};

/// Granularity of the schedule.
const TICK_MS: u8 = 1;

struct Stream {
    socket: TcpStream,
    /// Request bytes read of the current request.
    read: usize,
    answer: Option<Answer>,
    gone: bool,
}

struct Answer {
    start: Instant,
    events: u64,
    /// Bytes that the socket did not take.
    rest: Vec<u8>,
    complete: bool,
}

struct Server<'a> {
    plan: &'a Plan,
    script: &'a Script,
    shared: &'a Shared,
    epoll: Epoll,
    listeners: Vec<TcpListener>,
    streams: Vec<Stream>,
    request_len: usize,
    interval: Duration,
}

/// Serves until the client is done.
pub(super) fn run(
    listeners: Vec<TcpListener>,
    plan: &Plan,
    script: &Script,
    shared: &Shared,
) -> anyhow::Result<()> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    for (key, listener) in (0_u64..).zip(&listeners) {
        listener.set_nonblocking(true)?;
        epoll.add(listener, EpollEvent::new(EpollFlags::EPOLLIN, key))?;
    }
    let mut server = Server {
        plan,
        script,
        shared,
        epoll,
        listeners,
        streams: Vec::new(),
        request_len: request(0, 0)?.len(),
        interval: Duration::from_nanos(plan.interval_ns()),
    };
    let mut events = vec![EpollEvent::empty(); 1024];
    while !shared.client_done.load(Ordering::SeqCst) {
        let count = server.epoll.wait(&mut events, EpollTimeout::from(TICK_MS)).unwrap_or(0);
        for event in events.iter().take(count) {
            server.take(usize::try_from(event.data())?)?;
        }
        server.write_due()?;
    }
    Ok(())
}

impl Server<'_> {
    fn take(&mut self, key: usize) -> anyhow::Result<()> {
        match key.checked_sub(self.listeners.len()) {
            None => self.accept(key),
            Some(stream) => {
                self.read(stream);
                Ok(())
            }
        }
    }

    fn accept(&mut self, listener: usize) -> anyhow::Result<()> {
        while let Some(Ok((socket, _))) = self.listeners.get(listener).map(TcpListener::accept) {
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            // Slots of connections that are gone are used again: churn must not grow the table.
            let free =
                self.plan.churn.then(|| self.streams.iter().position(|it| it.gone)).flatten();
            let slot = free.unwrap_or(self.streams.len());
            let key = u64::try_from(slot + self.listeners.len())?;
            self.epoll.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, key))?;
            let stream = Stream { socket, read: 0, answer: None, gone: false };
            match self.streams.get_mut(slot) {
                Some(place) => *place = stream,
                None => self.streams.push(stream),
            }
        }
        Ok(())
    }

    fn read(&mut self, at: usize) {
        let Some(stream) = self.streams.get_mut(at).filter(|it| !it.gone) else { return };
        let mut buffer = [0; 4096];
        match stream.socket.read(&mut buffer) {
            Ok(0) => {
                // A failure means that it is out already.
                let _ = self.epoll.delete(&stream.socket);
                let _ = stream.socket.shutdown(std::net::Shutdown::Both);
                stream.gone = true;
            }
            Ok(read) => {
                stream.read += read;
                if stream.read >= self.request_len {
                    stream.read -= self.request_len;
                    let start = Instant::now();
                    stream.answer = Some(Answer {
                        start,
                        events: 0,
                        rest: self.script.head.clone(),
                        complete: false,
                    });
                }
            }
            Err(_) => {}
        }
    }

    fn write_due(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        for stream in self.streams.iter_mut().filter(|it| !it.gone) {
            let written = stream.write_due(now, self.interval, self.script)?;
            self.shared.events_written.fetch_add(written, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Stream {
    /// Writes what is due; answers how many events that were.
    fn write_due(
        &mut self,
        now: Instant,
        interval: Duration,
        script: &Script,
    ) -> anyhow::Result<u64> {
        let Some(answer) = &mut self.answer else { return Ok(0) };
        let before = answer.events;
        while write(&mut self.socket, &mut answer.rest)? {
            if answer.complete {
                let events = answer.events - before;
                self.answer = None;
                return Ok(events);
            }
            let due = interval * u32::try_from(answer.events)?;
            if answer.events < script.events && now.duration_since(answer.start) < due {
                break;
            }
            if answer.events < script.events {
                answer.events += 1;
                answer.rest.extend_from_slice(&script.event);
            } else {
                answer.complete = true;
                answer.rest.extend_from_slice(&script.tail);
            }
        }
        Ok(answer.events - before)
    }
}

/// Writes `rest`; true when nothing is left of it.
fn write(socket: &mut TcpStream, rest: &mut Vec<u8>) -> anyhow::Result<bool> {
    while !rest.is_empty() {
        match socket.write(rest) {
            Ok(written) => drop(rest.drain(..written)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}
