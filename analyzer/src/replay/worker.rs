//! One event loop: dispatches its share of the schedule and follows every connection to its end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use protocol::Nanos;

use super::config::{Connections, RequestLimits};
use super::connection::{Connection, Instruments, Next, Phase};
use super::error::ReplayError;
use super::exhausted::exhausted;
use super::line::Line;
use super::record::{of_connection, without_connection};
use super::source::{Prepared, Source};
use super::timers::{Due, Timers};
use crate::outcome::{Class, Ending};
use crate::records::RequestRecord;

const READ_BUFFER_BYTES: usize = 64 * 1024;
const EVENTS_PER_WAIT: usize = 256;
/// How long a stop may go unnoticed while nothing happens.
const STOP_POLL_MS: u8 = 20;
/// Of the timer in the epoll set; keys never reach it.
const TIMER_KEY: u64 = u64::MAX;

/// What all event loops of a run share.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a> {
    pub(super) address: SocketAddr,
    pub(super) limits: RequestLimits,
    pub(super) instruments: Instruments<'a>,
    /// Set by the caller: stop and book what is left as cancelled.
    pub(super) stop: &'a AtomicBool,
    /// Next connection number.
    pub(super) connections: &'a AtomicU64,
    /// Bodies beyond the inspection limit, among those dispatched.
    pub(super) oversized: &'a AtomicU64,
    /// Whether a connection takes another request.
    pub(super) reuse: Connections,
}

/// Takes the records of requests as they end.
pub(super) type Sink<'a> = &'a mut dyn FnMut(RequestRecord);

pub(super) struct Worker<'a> {
    shared: Shared<'a>,
    source: Source<'a>,
    epoll: Epoll,
    timer: TimerFd,
    timers: Timers,
    /// Requests under way, by a key that is never used again: timers outlive the requests that set them.
    connections: BTreeMap<u64, Connection>,
    /// Lines that wait for a request, the most recently used last.
    idle: BTreeMap<u64, Line>,
    next_key: u64,
    buffer: Vec<u8>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(shared: Shared<'a>, source: Source<'a>) -> Result<Self, ReplayError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(ReplayError::in_call("epoll_create1"))?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)
            .map_err(ReplayError::in_call("timerfd_create"))?;
        epoll
            .add(timer.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, TIMER_KEY))
            .map_err(ReplayError::in_call("epoll_ctl"))?;
        Ok(Self {
            shared,
            source,
            epoll,
            timer,
            timers: Timers::default(),
            connections: BTreeMap::new(),
            idle: BTreeMap::new(),
            next_key: 0,
            buffer: vec![0; READ_BUFFER_BYTES],
        })
    }

    /// Builds what may be built before the window opens.
    pub(super) fn build_ahead(&mut self) -> Result<(), ReplayError> {
        while self.source.build_one()? {}
        Ok(())
    }

    pub(super) fn start_at(&mut self, start: Nanos) {
        self.source.start_at(start);
    }

    /// Runs until every request of the source has ended.
    pub(super) fn run(&mut self, sink: Sink<'_>) -> Result<(), ReplayError> {
        loop {
            if self.shared.stop.load(Ordering::Relaxed) {
                return self.cancel(sink);
            }
            self.dispatch(sink)?;
            self.expire(sink)?;
            if self.connections.is_empty() && self.source.next_due().is_none() {
                return Ok(());
            }
            // One body at a time: readiness must not wait for a burst's worth of text.
            let built = self.source.build_one()?;
            self.arm()?;
            self.wait(!built, sink)?;
        }
    }

    fn now(&self) -> Nanos {
        self.shared.instruments.clock.now()
    }

    fn dispatch(&mut self, sink: Sink<'_>) -> Result<(), ReplayError> {
        while let Some(prepared) = self.source.pop_due(self.now())? {
            self.dispatch_one(prepared, sink)?;
        }
        Ok(())
    }

    fn dispatch_one(&mut self, prepared: Prepared, sink: Sink<'_>) -> Result<(), ReplayError> {
        self.shared.oversized.fetch_add(u64::from(prepared.oversized), Ordering::Relaxed);
        let dispatched = self.now();
        if let Some((key, line)) = self.take_idle() {
            return self.reuse(key, Connection::new(prepared, line, dispatched), sink);
        }
        match self.open() {
            Ok(line) => self.admit(Connection::new(prepared, line, dispatched)),
            Err(error) => {
                sink(self.not_opened(&prepared, dispatched, &error));
                Ok(())
            }
        }
    }

    fn open(&self) -> std::io::Result<Line> {
        let Shared { address, instruments, connections, .. } = self.shared;
        Line::open(address, instruments.tuning, || connections.fetch_add(1, Ordering::Relaxed))
    }

    fn key(&mut self) -> u64 {
        self.next_key += 1;
        self.next_key
    }

    /// Takes up a request on a line that is being opened.
    fn admit(&mut self, connection: Connection) -> Result<(), ReplayError> {
        let key = self.key();
        let event = EpollEvent::new(connection.interest(), key);
        self.epoll.add(connection.fd(), event).map_err(ReplayError::in_call("epoll_ctl"))?;
        self.follow(key, connection);
        Ok(())
    }

    fn follow(&mut self, key: u64, connection: Connection) {
        let deadline = self.shared.limits.deadline_ns;
        let deadline = connection.prepared.planned.get().saturating_add(deadline);
        self.timers.add(Nanos::new(deadline), key, Due::Deadline);
        self.connections.insert(key, connection);
    }

    /// The most recently used line that is still open.
    fn take_idle(&mut self) -> Option<(u64, Line)> {
        while let Some((key, mut line)) = self.idle.pop_last() {
            if line.quiet() {
                line.requests += 1;
                return Some((key, line));
            }
        }
        None
    }

    /// Takes up a request on a line that was idle under `key`.
    fn reuse(
        &mut self,
        key: u64,
        mut connection: Connection,
        sink: Sink<'_>,
    ) -> Result<(), ReplayError> {
        let next = connection.begin(self.shared.instruments);
        self.follow(key, connection);
        self.go_on(key, next, true, sink)
    }

    /// No connection could be opened.
    fn not_opened(
        &self,
        prepared: &Prepared,
        dispatched: Nanos,
        error: &std::io::Error,
    ) -> RequestRecord {
        let key = (prepared.index, prepared.trace_id, prepared.planned);
        let now = self.now();
        match exhausted(error) {
            Some(what) => without_connection(key, None, now, Class::CancelledByTool, &what),
            None => {
                let (class, detail) = (Class::ConnectError, error.to_string());
                without_connection(key, Some(dispatched), now, class, &detail)
            }
        }
    }

    fn expire(&mut self, sink: Sink<'_>) -> Result<(), ReplayError> {
        while let Some((id, due)) = self.timers.pop_due(self.now()) {
            let now = self.now();
            let Self { shared, connections, buffer, .. } = self;
            let Some(connection) = connections.get_mut(&id) else { continue };
            let before = connection.interest();
            let next = match due {
                Due::Deadline => Next::End(connection.deadline(now, shared.limits.stall_ns)),
                Due::Release => connection.release(shared.instruments),
                Due::Read => connection.read(shared.instruments, buffer),
            };
            let changed = due == Due::Read || connection.interest() != before;
            self.go_on(id, next, changed, sink)?;
        }
        Ok(())
    }

    fn go_on(
        &mut self,
        id: u64,
        next: Next,
        changed: bool,
        sink: Sink<'_>,
    ) -> Result<(), ReplayError> {
        match next {
            Next::End(ending) => {
                return self.end(id, &ending, sink);
            }
            Next::Hold => {
                let hold = self.shared.instruments.tuning.hold_last_byte_ns;
                self.timers.add(after(self.now(), hold), id, Due::Release);
            }
            Next::Wait => {}
        }
        match self.connections.get(&id) {
            Some(connection) if changed => self.watch(connection, id, connection.interest()),
            _ => Ok(()),
        }
    }

    fn watch(
        &self,
        connection: &Connection,
        id: u64,
        interest: EpollFlags,
    ) -> Result<(), ReplayError> {
        self.epoll
            .modify(connection.fd(), &mut EpollEvent::new(interest, id))
            .map_err(ReplayError::in_call("epoll_ctl"))
    }

    fn end(&mut self, id: u64, ending: &Ending, sink: Sink<'_>) -> Result<(), ReplayError> {
        let Some(connection) = self.connections.remove(&id) else { return Ok(()) };
        if connection.may_retry(ending) {
            return self.retry(connection, sink);
        }
        let keep = self.shared.reuse == Connections::KeepAlive && connection.may_keep(ending);
        let (record, line) = of_connection(connection, ending, self.now());
        sink(record);
        // Dropping a line closes its socket, which takes it out of the epoll set.
        if keep { self.park(line) } else { Ok(()) }
    }

    /// Keeps a line for the next request. Whatever happens on it meanwhile ends it.
    fn park(&mut self, line: Line) -> Result<(), ReplayError> {
        let key = self.key();
        let mut event = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP, key);
        self.epoll.modify(line.fd(), &mut event).map_err(ReplayError::in_call("epoll_ctl"))?;
        self.idle.insert(key, line);
        Ok(())
    }

    fn retry(&mut self, connection: Connection, sink: Sink<'_>) -> Result<(), ReplayError> {
        match self.open() {
            Ok(line) => self.admit(connection.again(line)),
            Err(error) => {
                let Connection { prepared, dispatched, retries, .. } = connection;
                let record = self.not_opened(&prepared, dispatched, &error);
                // However it ends, it was sent before.
                sink(RequestRecord {
                    dispatched_ns: Some(dispatched),
                    retries: retries + 1,
                    ..record
                });
                Ok(())
            }
        }
    }

    fn cancel(&mut self, sink: Sink<'_>) -> Result<(), ReplayError> {
        while let Some(&id) = self.connections.keys().next() {
            self.end(id, &Ending::Cancelled, sink)?;
        }
        let now = self.now();
        for key in self.source.drain() {
            let detail = "stopped before it was sent";
            sink(without_connection(key, None, now, Class::CancelledByTool, detail));
        }
        Ok(())
    }

    /// Sets the timer to the next thing that is due; an instant that has passed fires at once.
    fn arm(&self) -> Result<(), ReplayError> {
        let due = self.source.next_due().into_iter().chain(self.timers.next()).min();
        let Some(due) = due else { return Ok(()) };
        // An expiration of 0 would disarm the timer.
        let at = TimeSpec::from_duration(Duration::from_nanos(due.get().max(1)));
        self.timer
            .set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            .map_err(ReplayError::in_call("timerfd_settime"))
    }

    fn wait(&mut self, idle: bool, sink: Sink<'_>) -> Result<(), ReplayError> {
        let mut events = [EpollEvent::empty(); EVENTS_PER_WAIT];
        let timeout = if idle { STOP_POLL_MS } else { 0 };
        let count = match self.epoll.wait(&mut events, timeout) {
            Ok(count) => count,
            Err(nix::Error::EINTR) => 0,
            Err(errno) => return Err(ReplayError::in_call("epoll_wait")(errno)),
        };
        for event in &events[..count] {
            self.handle(event.data(), event.events(), sink)?;
            // A plan that comes due within a long batch must not wait for its end.
            self.dispatch(sink)?;
        }
        Ok(())
    }

    fn handle(&mut self, id: u64, events: EpollFlags, sink: Sink<'_>) -> Result<(), ReplayError> {
        if id == TIMER_KEY {
            // What is due is looked up by the clock; this only quiets the timer.
            return match self.timer.unset() {
                Ok(()) => Ok(()),
                Err(errno) => Err(ReplayError::in_call("timerfd_settime")(errno)),
            };
        }
        let Self { shared, connections, buffer, .. } = self;
        let Some(connection) = connections.get_mut(&id) else {
            // An idle line that was closed, or on which the server spoke unasked.
            self.idle.remove(&id);
            return Ok(());
        };
        let delay = shared.instruments.tuning.read_delay_ns;
        if delay > 0 && connection.phase == Phase::Receiving {
            return self.postpone(id, delay);
        }
        let before = connection.interest();
        let next = connection.ready(events, shared.instruments, buffer);
        let changed = connection.interest() != before;
        self.go_on(id, next, changed, sink)
    }

    /// Stops watching the connection until its delayed read.
    fn postpone(&mut self, id: u64, delay_ns: u64) -> Result<(), ReplayError> {
        self.timers.add(after(self.now(), delay_ns), id, Due::Read);
        let Some(connection) = self.connections.get(&id) else { return Ok(()) };
        // Errors and hang-ups are reported even to an empty interest: take it out of the set.
        self.epoll
            .modify(connection.fd(), &mut EpollEvent::new(EpollFlags::EPOLLONESHOT, id))
            .map_err(ReplayError::in_call("epoll_ctl"))
    }
}

fn after(now: Nanos, ns: u64) -> Nanos {
    Nanos::new(now.get().saturating_add(ns))
}
