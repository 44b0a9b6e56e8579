//! One request on a connection, from connect or reuse to the end of the response.

use std::io;
use std::os::fd::BorrowedFd;

use nix::sys::epoll::EpollFlags;
use protocol::http1::{Close, Framing, Method};
use protocol::timeline::{FeedReport, Limits};
use protocol::{Nanos, ResponseTimeline};

use super::config::Tuning;
use super::line::Line;
use super::receive::{Received, receive};
use super::source::Prepared;
use crate::clock::{Clock, RealtimeMap, STEP_NS};
use crate::outcome::Ending;

/// Reads per readiness before other connections get their turn.
const READS_PER_TURN: usize = 16;
/// First and last token are kept beside the list; a client needs no more of it.
const TOKEN_STAMPS: usize = 0;

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Connecting,
    Sending,
    /// Everything but the last byte is written; see [`Tuning::hold_last_byte_ns`].
    Held,
    Receiving,
}

/// What the event loop does next for a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Wait for readiness.
    Wait,
    /// Call [`Connection::release`] after the hold.
    Hold,
    /// The request has ended.
    End(Ending),
}

/// Reads by where their stamp came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StampTally {
    pub(super) kernel: u64,
    pub(super) clock: u64,
}

/// Clocks and knobs that all connections share.
#[derive(Clone, Copy)]
pub(super) struct Instruments<'a> {
    pub(super) clock: &'a dyn Clock,
    pub(super) realtime: &'a RealtimeMap,
    pub(super) tuning: Tuning,
}

pub(super) struct Connection {
    pub(super) prepared: Prepared,
    pub(super) phase: Phase,
    pub(super) dispatched: Nanos,
    pub(super) connected: Option<Nanos>,
    pub(super) sent: Option<Nanos>,
    pub(super) written: usize,
    pub(super) retries: u32,
    pub(super) timeline: ResponseTimeline,
    pub(super) stamps: StampTally,
    pub(super) coalesced: Option<bool>,
    released: bool,
    write_error: Option<io::Error>,
    pub(super) line: Line,
}

impl Connection {
    /// A request on a line that was just opened, or on one that is used again.
    pub(super) fn new(prepared: Prepared, line: Line, dispatched: Nanos) -> Self {
        let limits = Limits { token_stamps: TOKEN_STAMPS, ..Limits::default() };
        let reused = line.requests > 1;
        Self {
            prepared,
            phase: if reused { Phase::Sending } else { Phase::Connecting },
            dispatched,
            connected: None,
            sent: None,
            written: 0,
            retries: 0,
            timeline: ResponseTimeline::with_limits(Method::Post, limits),
            stamps: StampTally::default(),
            coalesced: None,
            released: false,
            write_error: None,
            line,
        }
    }

    /// Sends the request that could not be answered on a connection of its own. The plan and the first
    /// dispatch stay: what the lost connection cost is the request's.
    pub(super) fn again(self, line: Line) -> Self {
        let retries = self.retries + 1;
        Self { retries, ..Self::new(self.prepared, line, self.dispatched) }
    }

    /// It went out on a connection that had carried another request.
    pub(super) fn reused(&self) -> bool {
        self.line.requests > 1
    }

    /// Whether the request may be sent once more: only after a reused connection ended before any byte of the
    /// response (RFC 9112 9.3.1; the server closed it between two requests).
    pub(super) fn may_retry(&self, ending: &Ending) -> bool {
        let ended = matches!(ending, Ending::Eof | Ending::Reset(_));
        ended && self.reused() && self.timeline.record().bytes == 0
    }

    /// Whether the line may carry another request: the response ended by its own framing with nothing behind
    /// it, neither side asked to close, and the request was taken whole.
    pub(super) fn may_keep(&self, ending: &Ending) -> bool {
        *ending == Ending::Response
            && self.timeline.keep_alive()
            && self.timeline.record().framing == Framing::Valid
            && self.phase == Phase::Receiving
            && self.write_error.is_none()
            && self.sent.is_some()
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.line.fd()
    }

    /// Readiness that the current phase waits for. A response may begin, and must be seen, before the
    /// request is written whole.
    pub(super) fn interest(&self) -> EpollFlags {
        match self.phase {
            Phase::Connecting => EpollFlags::EPOLLOUT,
            Phase::Sending => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
            Phase::Held | Phase::Receiving => EpollFlags::EPOLLIN,
        }
    }

    /// Goes on after epoll reported `events`.
    pub(super) fn ready(
        &mut self,
        events: EpollFlags,
        with: Instruments<'_>,
        buffer: &mut [u8],
    ) -> Next {
        if self.phase == Phase::Connecting {
            return self.connected(with);
        }
        let readable = EpollFlags::EPOLLIN | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        if events.intersects(readable)
            && let Next::End(ending) = self.read(with, buffer)
        {
            return Next::End(ending);
        }
        if events.contains(EpollFlags::EPOLLOUT) && self.phase == Phase::Sending {
            return self.write(with);
        }
        Next::Wait
    }

    fn connected(&mut self, with: Instruments<'_>) -> Next {
        match self.line.socket.take_error() {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return Next::End(Ending::Connect(error.to_string())),
        }
        self.connected = Some(with.clock.now());
        self.phase = Phase::Sending;
        self.write(with)
    }

    /// Writes the held last byte.
    pub(super) fn release(&mut self, with: Instruments<'_>) -> Next {
        if self.phase != Phase::Held {
            return Next::Wait;
        }
        self.phase = Phase::Sending;
        self.released = true;
        self.write(with)
    }

    fn write(&mut self, with: Instruments<'_>) -> Next {
        let whole = self.prepared.bytes.len();
        let hold = with.tuning.hold_last_byte_ns > 0 && !self.released;
        let end = if hold { whole - 1 } else { whole };
        while self.written < end {
            // Read before the write: the peer may act on the last byte before the call returns.
            let before = with.clock.now();
            let rest = &self.prepared.bytes[self.written..end];
            match self.line.socket.send_with_flags(rest, libc::MSG_NOSIGNAL) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Next::Wait,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // The server may have answered before it refused the rest: read what it said.
                    self.write_error = Some(error);
                    self.phase = Phase::Receiving;
                    return Next::Wait;
                }
            }
            if self.written == whole {
                self.sent.get_or_insert(before);
            }
        }
        if hold {
            self.sent = Some(with.clock.now());
            self.phase = Phase::Held;
            return Next::Hold;
        }
        self.phase = Phase::Receiving;
        if !self.reused() {
            self.prepared.release_bytes();
        }
        Next::Wait
    }

    /// Begins on a reused line.
    pub(super) fn begin(&mut self, with: Instruments<'_>) -> Next {
        self.write(with)
    }

    pub(super) fn read(&mut self, with: Instruments<'_>, buffer: &mut [u8]) -> Next {
        for _ in 0..READS_PER_TURN {
            match receive(self.line.fd(), buffer) {
                Ok(received) if received.len == 0 => return self.closed(with),
                Ok(received) => {
                    if self.take(&buffer[..received.len], received, buffer.len(), with) {
                        return Next::End(Ending::Response);
                    }
                    if received.queued == Some(0) {
                        return Next::Wait;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Next::Wait,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.timeline.close(Close::Reset, with.clock.now());
                    return Next::End(Ending::Reset(error.to_string()));
                }
            }
        }
        Next::Wait
    }

    /// Feeds one read; true when nothing more can come of the response.
    fn take(
        &mut self,
        bytes: &[u8],
        received: Received,
        capacity: usize,
        with: Instruments<'_>,
    ) -> bool {
        let stamp = self.stamp(received.realtime, with);
        if self.phase == Phase::Receiving {
            // It has been answered: no retry will need the bytes.
            self.prepared.release_bytes();
        }
        let report = self.timeline.feed(bytes, stamp);
        if report.first_token {
            self.coalesced = Some(coalesced(report, received, capacity));
        }
        // What is still queued behind the end of the response is not read any more, but it is there.
        let queued = received.queued.filter(|_| report.complete).map_or(0, |hint| self.left(hint));
        let excess = u64::try_from(bytes.len() - report.consumed).unwrap_or(u64::MAX) + queued;
        if excess > 0 {
            self.timeline.excess(excess);
        }
        let broken = matches!(self.timeline.record().framing, Framing::Invalid { .. });
        report.complete || broken
    }

    /// Bytes that stay queued. A hint of 1 is ambiguous: the kernel also gives it for an empty queue once
    /// the peer has closed, so that callers read on to the end of the stream.
    fn left(&self, hint: u32) -> u64 {
        match hint {
            1 => receive(self.line.fd(), &mut [0]).map_or(0, |last| last.len as u64),
            hint => u64::from(hint),
        }
    }

    /// The kernel's stamp where there is a credible one, else the client's clock.
    fn stamp(&mut self, realtime: Option<u64>, with: Instruments<'_>) -> Nanos {
        let now = with.clock.now();
        let slack = i64::try_from(STEP_NS).unwrap_or(i64::MAX);
        let credible =
            |stamp: &Nanos| stamp.since(now) <= slack && self.dispatched.since(*stamp) <= slack;
        let kernel = realtime
            .filter(|_| !with.tuning.clock_stamps)
            .map(|realtime| with.realtime.monotonic(realtime))
            .filter(credible);
        match kernel {
            Some(_) => self.stamps.kernel += 1,
            None => self.stamps.clock += 1,
        }
        kernel.unwrap_or(now)
    }

    fn closed(&mut self, with: Instruments<'_>) -> Next {
        let now = with.clock.now();
        Next::End(match self.write_error.take() {
            // The pending error was already handed to the write: the read sees an orderly end.
            Some(error) => {
                self.timeline.close(Close::Reset, now);
                Ending::Reset(error.to_string())
            }
            None => {
                self.timeline.close(Close::Eof, now);
                Ending::Eof
            }
        })
    }

    /// The deadline has passed at `now`.
    pub(super) fn deadline(&self, now: Nanos, stall_ns: u64) -> Ending {
        if self.connected.is_none() && !self.reused() {
            return Ending::Connect("not connected by the deadline".to_owned());
        }
        let stall = i64::try_from(stall_ns).unwrap_or(i64::MAX);
        let last = self.timeline.record().last_body_byte;
        Ending::Deadline { alive: last.is_some_and(|last| now.since(last) <= stall) }
    }
}

/// A read carries the stamp of its last segment alone. It is the first token's own only when nothing but
/// that event's line ends followed, and nothing was left behind.
fn coalesced(report: FeedReport, received: Received, capacity: usize) -> bool {
    let remains = received.queued.is_some_and(|bytes| bytes > 0);
    let excess = received.len > report.consumed;
    report.followed || excess || received.len == capacity || remains
}
