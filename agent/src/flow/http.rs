//! The requests of one connection, first in, first out.

mod ends;
mod request;
mod response;

use std::collections::VecDeque;

use protocol::Nanos;

use super::event::Side;
use super::exchange::Exchange;
use super::stats::FlowStats;

/// Methods that begin a request line; others are legal, but no sign to resume at.
const METHODS: [&[u8]; 7] =
    [b"POST ", b"GET ", b"PUT ", b"DELETE ", b"HEAD ", b"PATCH ", b"OPTIONS "];

/// Starts of its target: origin-form, absolute-form, asterisk-form (RFC 9112, section 3.2).
const TARGETS: [&[u8]; 4] = [b"/", b"http://", b"https://", b"*"];

/// Whether `bytes` begin with a request line, as far as its target tells.
fn begins_request(bytes: &[u8]) -> bool {
    let target = METHODS.iter().find_map(|method| bytes.strip_prefix(*method));
    target.is_some_and(|target| TARGETS.iter().any(|start| target.starts_with(start)))
}

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
    /// The one that made the connection opaque, answered: its bytes are counted until its end.
    opaque: Option<Box<Exchange>>,
    next_index: u64,
    doubtful: bool,
    /// Response bytes came before any request that they could belong to.
    passed_by: bool,
    limit: usize,
    client_closed: Option<Nanos>,
    endpoint_closed: bool,
    /// Somebody asks for the prefixes of prompts.
    pub(super) reads_prompts: bool,
    pub(super) events: Vec<HttpEvent>,
}

impl Http {
    /// `adopted`: the connection is seen from its middle.
    pub(super) fn new(adopted: bool, limit: usize) -> Self {
        Self {
            mode: if adopted { Mode::Waiting } else { Mode::Live },
            queue: VecDeque::new(),
            last: None,
            opaque: None,
            next_index: 0,
            doubtful: adopted,
            passed_by: false,
            limit,
            client_closed: None,
            endpoint_closed: false,
            reads_prompts: false,
            events: Vec::new(),
        }
    }

    /// The connection was seen from its start after all: its SYN came late.
    pub(super) fn trust(&mut self) {
        // What passed unread was the start of a response: the rest cannot be judged.
        if self.passed_by {
            return;
        }
        self.doubtful = false;
        self.queue.iter_mut().chain(self.last.as_deref_mut()).for_each(|it| it.doubtful = false);
        if self.mode == Mode::Waiting {
            self.mode = Mode::Live;
        }
    }

    /// Where the endpoint's bytes begin is not known.
    pub(super) fn doubt(&mut self) {
        self.doubtful = true;
        self.queue.iter_mut().for_each(|it| it.doubtful = true);
    }

    /// Requests that nobody has answered in full.
    #[cfg(test)]
    pub(super) fn in_flight(&self) -> usize {
        self.queue.iter().filter(|exchange| exchange.in_flight).count()
    }

    /// Requests whose observation is still to come.
    pub(super) fn open(&self) -> impl Iterator<Item = &Exchange> {
        self.queue.iter()
    }

    /// When the kept exchange ended; `None` when none is kept.
    pub(super) fn kept_since(&self) -> Option<Nanos> {
        self.last.as_ref().and_then(|last| last.end)
    }

    /// The exchange whose request is under way.
    fn receiving(&mut self) -> Option<&mut Exchange> {
        self.queue.back_mut().filter(|exchange| !exchange.request_complete())
    }

    /// The exchange that response bytes belong to.
    fn answering(&self) -> Option<usize> {
        self.queue.iter().position(|exchange| !exchange.response_complete())
    }

    /// A complete exchange: finished, unless excess bytes may still follow it.
    fn retire(&mut self, exchange: Exchange) {
        self.flush();
        if !exchange.request_complete() {
            self.lose_step();
        } else if self.doubtful && !exchange.response_lost() && !exchange.response_invalid() {
            // A whole message in step is proof that the connection is in step again.
            self.doubtful = !self.queue.is_empty();
        }
        if self.queue.is_empty() && self.client_closed.is_none() {
            self.last = Some(Box::new(exchange));
        } else {
            self.events.push(HttpEvent::Finished(Box::new(exchange)));
        }
    }

    /// Where the request that was just answered ended is not known, nor how many followed it: the
    /// next one is found by its request line.
    fn lose_step(&mut self) {
        self.doubtful = true;
        if self.mode == Mode::Live {
            self.mode = Mode::Waiting;
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

    /// The opaque exchange has its first response byte: it is nobody's request in flight any more,
    /// and what was sent behind it is not HTTP/1.
    fn keep_opaque(&mut self, at: usize, stamp: Nanos) {
        self.flush();
        let Some(mut exchange) = self.queue.remove(at) else { return };
        self.events.extend(end_flight(&mut exchange, stamp));
        exchange.end = None;
        self.opaque = Some(Box::new(exchange));
        self.finish_all(stamp);
    }

    /// The exchange that bytes of an opaque connection are counted for.
    fn dark(&mut self) -> Option<&mut Exchange> {
        self.opaque.as_deref_mut().or(self.queue.back_mut())
    }

    /// Hands over everything that is told before its end: what is kept for a moment, and the one
    /// observation of an opaque connection, with what it has carried so far.
    pub(super) fn hand_over(&mut self) {
        self.flush();
        self.events.extend(self.opaque.take().map(HttpEvent::Finished));
    }

    /// An opaque connection is over.
    fn end_opaque(&mut self, stamp: Nanos) {
        if let Some(mut exchange) = self.opaque.take() {
            exchange.end = Some(stamp.max(exchange.seen));
            self.events.push(HttpEvent::Finished(exchange));
        }
    }

    /// Hands over the kept exchange.
    pub(super) fn flush(&mut self) {
        self.events.extend(self.last.take().map(HttpEvent::Finished));
    }

    /// Counts a payload segment for the request it belongs to; `repeated` is when its bytes were repeated.
    pub(super) fn count(&mut self, from: Side, repeated: Option<Nanos>) {
        if let Some(exchange) = self.counted(from) {
            exchange.segments += 1;
            exchange.retransmits[index(from)] += u64::from(repeated.is_some());
            if let (Side::Client, Some(stamp)) = (from, repeated) {
                exchange.resent(stamp);
            }
        }
    }

    /// The endpoint's segment that was just counted was another view of one, or repeated bytes.
    pub(super) fn correct(&mut self, another_view: bool, repeated: bool) {
        if let Some(exchange) = self.counted(Side::Endpoint) {
            exchange.segments = exchange.segments.saturating_sub(u64::from(another_view));
            exchange.retransmits[1] += u64::from(repeated);
        }
    }

    /// This host's TCP sent a segment of one direction again.
    pub(super) fn count_socket_retransmit(&mut self, from: Side) {
        if let Some(exchange) = self.counted(from) {
            exchange.socket_retransmits[index(from)] += 1;
        }
    }

    fn counted(&mut self, from: Side) -> Option<&mut Exchange> {
        if self.opaque.is_some() {
            return self.opaque.as_deref_mut();
        }
        let at = match from {
            Side::Client => self.queue.len().checked_sub(1),
            Side::Endpoint => self.answering(),
        };
        match at {
            Some(at) => self.queue.get_mut(at),
            None => self.last.as_deref_mut(),
        }
    }

    /// Bytes were repeated with other content: whichever request they belong to has no verdict.
    pub(super) fn contradicted(&mut self) {
        self.queue.iter_mut().chain(self.last.as_deref_mut()).for_each(Exchange::contradict);
    }
}

/// Place of a direction in counts by direction: the request's first.
fn index(from: Side) -> usize {
    match from {
        Side::Client => 0,
        Side::Endpoint => 1,
    }
}

/// A request that the client sends behind its own FIN is over at once, not before it began.
fn end_flight(exchange: &mut Exchange, stamp: Nanos) -> Option<HttpEvent> {
    let end = *exchange.end.get_or_insert(stamp.max(exchange.seen));
    std::mem::take(&mut exchange.in_flight).then_some(HttpEvent::Ended(end))
}
