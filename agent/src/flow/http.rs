//! The requests of one connection, first in, first out.

use std::collections::VecDeque;

use protocol::Nanos;
use protocol::http1::Close;

use super::event::Side;
use super::exchange::Exchange;
use super::stats::FlowStats;
use super::stream::Delivery;

/// Methods that begin a request line; others are legal, but no sign to resume at.
const REQUEST_STARTS: [&[u8]; 7] =
    [b"POST /", b"GET /", b"PUT /", b"DELETE /", b"HEAD /", b"PATCH /", b"OPTIONS /"];

/// What becomes of a connection's requests.
#[derive(Debug)]
pub(super) enum HttpEvent {
    /// The first byte of a request.
    Started(Nanos),
    /// The response ended, or the connection did.
    Ended(Nanos),
    /// Nothing more can come.
    Finished(Box<Exchange>),
}

/// How far the bytes of a connection can be assigned to requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Seen from the middle: a request line must come first.
    Waiting,
    /// Every byte belongs to a known request.
    Live,
    /// Not HTTP/1: nothing is read.
    Dark,
}

/// The requests of one connection.
#[derive(Debug)]
pub(super) struct Http {
    mode: Mode,
    /// Requests whose response or whose own end is outstanding.
    queue: VecDeque<Exchange>,
    /// The last one, complete, kept for a moment because excess bytes may follow.
    last: Option<Box<Exchange>>,
    next_index: u64,
    doubtful: bool,
    limit: usize,
    client_closed: Option<Nanos>,
    endpoint_closed: bool,
    pub(super) events: Vec<HttpEvent>,
}

impl Http {
    /// `adopted`: the connection is seen from its middle.
    pub(super) fn new(adopted: bool, limit: usize) -> Self {
        Self {
            mode: if adopted { Mode::Waiting } else { Mode::Live },
            queue: VecDeque::new(),
            last: None,
            next_index: 0,
            doubtful: adopted,
            limit,
            client_closed: None,
            endpoint_closed: false,
            events: Vec::new(),
        }
    }

    /// The connection was seen from its start after all: its SYN came late.
    pub(super) fn trust(&mut self) {
        self.doubtful = false;
        self.queue.iter_mut().chain(self.last.as_deref_mut()).for_each(|it| it.doubtful = false);
        if self.mode == Mode::Waiting {
            self.mode = Mode::Live;
        }
    }

    /// Requests that are still open.
    pub(super) fn open(&self) -> impl Iterator<Item = &Exchange> {
        self.queue.iter()
    }

    /// When the kept exchange ended; `None` when none is kept.
    pub(super) fn kept_since(&self) -> Option<Nanos> {
        self.last.as_ref().and_then(|last| last.end)
    }

    /// The client has left a response unfinished: since when nothing has come.
    pub(super) fn left_since(&self) -> Option<Nanos> {
        let closed = self.client_closed?;
        let newest = self.queue.iter().filter_map(Exchange::last_byte).max();
        (!self.queue.is_empty()).then(|| newest.map_or(closed, |newest| newest.max(closed)))
    }

    /// Takes a part of the request direction.
    pub(super) fn request(&mut self, delivery: Delivery<'_>, stats: &mut FlowStats) {
        match delivery {
            Delivery::Bytes(bytes, stamp) => self.request_bytes(bytes, stamp, stats),
            Delivery::Unseen(len, stamp) => self.request_skipped(len, stamp, Some(stamp), stats),
            Delivery::Lost(len, stamp) => {
                stats.gaps += 1;
                // One number without a byte is the client's FIN.
                if len > 1 || self.receiving().is_some() {
                    self.request_skipped(len, stamp, None, stats);
                }
            }
        }
    }

    fn request_bytes(&mut self, mut bytes: &[u8], stamp: Nanos, stats: &mut FlowStats) {
        while !bytes.is_empty() && self.mode != Mode::Dark {
            if self.out_of_step() {
                if !REQUEST_STARTS.iter().any(|start| bytes.starts_with(start)) {
                    self.pass_by(bytes, stamp, stats);
                    return;
                }
                self.resume(stamp);
            }
            if self.receiving().is_none() {
                bytes = trim_line_ends(bytes);
                if bytes.is_empty() {
                    return;
                }
                self.start(stamp, stats);
            }
            let Some(exchange) = self.receiving() else { return };
            let taken = exchange.feed_request(bytes, stamp);
            if exchange.opaque.is_some() {
                self.go_dark(stats);
                return;
            }
            self.settle_early();
            bytes = &bytes[taken..];
        }
    }

    /// Request bytes cannot be assigned.
    fn out_of_step(&mut self) -> bool {
        self.mode == Mode::Waiting || self.receiving().is_some_and(|it| it.request_lost())
    }

    fn pass_by(&mut self, bytes: &[u8], stamp: Nanos, stats: &mut FlowStats) {
        match self.receiving() {
            Some(exchange) => {
                exchange.feed_request(bytes, stamp);
            }
            None => stats.unassigned_bytes += bytes.len() as u64,
        }
    }

    /// Begins anew at a request line.
    fn resume(&mut self, stamp: Nanos) {
        self.abandon(stamp);
        self.doubtful = true;
        self.mode = Mode::Live;
    }

    fn request_skipped(
        &mut self,
        mut len: u64,
        stamp: Nanos,
        known: Option<Nanos>,
        stats: &mut FlowStats,
    ) {
        while len > 0 && self.mode == Mode::Live {
            if self.receiving().is_none() {
                self.start(stamp, stats);
            }
            let Some(exchange) = self.receiving() else { return };
            if exchange.request_bytes() == 0 {
                exchange.request_first = known;
            }
            let taken = exchange.skip_request(len, known);
            if taken == 0 {
                return;
            }
            len -= taken;
            self.settle_early();
        }
    }

    /// The exchange whose request is under way.
    fn receiving(&mut self) -> Option<&mut Exchange> {
        self.queue.back_mut().filter(|exchange| !exchange.request_complete())
    }

    fn start(&mut self, stamp: Nanos, stats: &mut FlowStats) {
        self.flush();
        // A client sends its next request when it has read the response: one that cannot be
        // followed any more must be over.
        let lost = self.queue.iter().any(Exchange::response_lost);
        let full = self.queue.len() >= self.limit;
        if lost || full {
            stats.evicted_flows += u64::from(full);
            self.abandon(stamp);
            self.doubtful = true;
        }
        self.queue.push_back(Exchange::new(self.next_index, stamp, self.doubtful));
        self.next_index += 1;
        self.events.push(HttpEvent::Started(stamp));
    }

    /// A response that came before its request's end is over once the request ends too.
    fn settle_early(&mut self) {
        if self.queue.back().is_some_and(Exchange::is_complete)
            && let Some(exchange) = self.queue.pop_back()
        {
            self.retire(exchange);
        }
    }

    /// Takes a part of the response direction.
    pub(super) fn response(&mut self, delivery: Delivery<'_>, stats: &mut FlowStats) {
        match delivery {
            Delivery::Bytes(bytes, stamp) => self.response_bytes(bytes, stamp, stats),
            Delivery::Unseen(len, stamp) | Delivery::Lost(len, stamp) => {
                stats.gaps += 1;
                self.response_lost(len, stamp, stats);
            }
        }
    }

    fn response_bytes(&mut self, mut bytes: &[u8], stamp: Nanos, stats: &mut FlowStats) {
        while !bytes.is_empty() {
            let Some(at) = self.answering() else {
                self.unasked(bytes.len() as u64, stats);
                return;
            };
            let exchange = &mut self.queue[at];
            let opaque = exchange.opaque.is_some();
            let taken = exchange.feed_response(bytes, stamp).consumed;
            if opaque || exchange.opaque.is_some() {
                self.go_dark(stats);
                self.finish_all(stamp);
                return;
            }
            self.after_response(at, stamp);
            if taken == 0 {
                return;
            }
            bytes = &bytes[taken..];
        }
    }

    fn response_lost(&mut self, mut len: u64, stamp: Nanos, stats: &mut FlowStats) {
        while len > 0 {
            let Some(at) = self.answering() else {
                stats.unassigned_bytes += len;
                return;
            };
            let taken = self.queue[at].lose_response(len, stamp);
            self.after_response(at, stamp);
            if taken == 0 {
                return;
            }
            len -= taken;
        }
    }

    /// The exchange that response bytes belong to.
    fn answering(&self) -> Option<usize> {
        self.queue.iter().position(|exchange| !exchange.response_complete())
    }

    fn after_response(&mut self, at: usize, stamp: Nanos) {
        let exchange = &mut self.queue[at];
        if !exchange.response_complete() {
            return;
        }
        self.events.extend(end_flight(exchange, stamp));
        if exchange.is_complete()
            && let Some(exchange) = self.queue.remove(at)
        {
            self.retire(exchange);
        }
    }

    /// A complete exchange: finished, unless excess bytes may still follow it.
    fn retire(&mut self, exchange: Exchange) {
        self.flush();
        // A whole message in step is proof that the connection is in step again.
        if self.doubtful && !exchange.response_lost() && !exchange.response_invalid() {
            self.doubtful = !self.queue.is_empty();
        }
        if self.queue.is_empty() && self.client_closed.is_none() {
            self.last = Some(Box::new(exchange));
        } else {
            self.events.push(HttpEvent::Finished(Box::new(exchange)));
        }
    }

    fn unasked(&mut self, bytes: u64, stats: &mut FlowStats) {
        let live = self.mode == Mode::Live && !self.doubtful && self.client_closed.is_none();
        match self.last.as_deref_mut().or(self.queue.back_mut()) {
            Some(exchange) if live => exchange.excess(bytes),
            _ => stats.unassigned_bytes += bytes,
        }
    }

    /// Another protocol follows: nothing after this is read. A request that is opaque from its
    /// first byte waits for its first response byte.
    fn go_dark(&mut self, stats: &mut FlowStats) {
        if self.mode != Mode::Dark {
            stats.opaque_connections += 1;
            self.mode = Mode::Dark;
        }
    }

    /// Hands over the kept exchange.
    pub(super) fn flush(&mut self) {
        self.events.extend(self.last.take().map(HttpEvent::Finished));
    }

    fn finish_all(&mut self, stamp: Nanos) {
        self.flush();
        while let Some(mut exchange) = self.queue.pop_front() {
            self.events.extend(end_flight(&mut exchange, stamp));
            self.events.push(HttpEvent::Finished(Box::new(exchange)));
        }
    }

    /// The client sends no more.
    pub(super) fn client_fin(&mut self, stamp: Nanos) {
        self.client_closed.get_or_insert(stamp);
        self.flush();
        if self.endpoint_closed {
            self.close(Close::Eof, stamp);
            return;
        }
        // Whoever met a broken response leaves; its end cannot be found any more.
        let over = self.queue.iter().all(|it| it.response_complete() || it.response_invalid());
        if over {
            self.finish_all(stamp);
        }
    }

    /// The endpoint sends no more.
    pub(super) fn endpoint_fin(&mut self, stamp: Nanos) {
        self.endpoint_closed = true;
        self.close(Close::Eof, stamp);
    }

    /// The connection was reset by `side`.
    pub(super) fn reset(&mut self, side: Side, stamp: Nanos) {
        if side == Side::Client {
            self.client_closed.get_or_insert(stamp);
        }
        self.close(Close::Reset, stamp);
    }

    /// The client left, and nothing has come since.
    pub(super) fn give_up_left(&mut self) {
        if let Some(closed) = self.client_closed {
            self.close(Close::Eof, closed);
        }
    }

    fn close(&mut self, close: Close, stamp: Nanos) {
        for exchange in &mut self.queue {
            exchange.aborted = self.client_closed.is_some() && !exchange.response_complete();
            // From the client's FIN on, the request was nobody's.
            let end = self.client_closed.filter(|_| exchange.aborted).unwrap_or(stamp);
            exchange.close_response(close, end);
        }
        self.finish_all(stamp);
    }

    /// What is open can't be followed any more.
    pub(super) fn abandon(&mut self, stamp: Nanos) {
        for exchange in &mut self.queue {
            exchange.unknowable |= !exchange.response_complete();
        }
        self.finish_all(stamp);
    }

    /// Counts a payload segment for the request it belongs to.
    pub(super) fn count(&mut self, from: Side, repeated: bool) {
        let at = match from {
            Side::Client => self.queue.len().checked_sub(1),
            Side::Endpoint => self.answering(),
        };
        let exchange = match at {
            Some(at) => self.queue.get_mut(at),
            None => self.last.as_deref_mut(),
        };
        if let Some(exchange) = exchange {
            exchange.segments += 1;
            exchange.retransmits += u64::from(repeated);
        }
    }

    /// The endpoint's segment that was just counted repeated bytes.
    pub(super) fn count_repeat(&mut self) {
        let at = self.answering();
        let exchange = match at {
            Some(at) => self.queue.get_mut(at),
            None => self.last.as_deref_mut(),
        };
        if let Some(exchange) = exchange {
            exchange.retransmits += 1;
        }
    }

    /// Bytes were repeated with other content: whichever request they belong to has no verdict.
    pub(super) fn contradicted(&mut self) {
        self.queue.iter_mut().chain(self.last.as_deref_mut()).for_each(|it| it.unknowable = true);
    }
}

fn end_flight(exchange: &mut Exchange, stamp: Nanos) -> Option<HttpEvent> {
    let end = *exchange.end.get_or_insert(stamp);
    std::mem::take(&mut exchange.in_flight).then_some(HttpEvent::Ended(end))
}

/// Empty lines between requests belong to none (RFC 9112, section 2.2).
fn trim_line_ends(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
    &bytes[start.unwrap_or(bytes.len())..]
}
