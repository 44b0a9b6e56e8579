//! One connection: two streams and the requests on them.

use std::net::SocketAddr;

use protocol::Nanos;

use super::event::{ConnectionId, FinishedExchange, FlowEvent, Side};
use super::exchange::Exchange;
use super::handshake::Handshake;
use super::http::{Http, HttpEvent};
use super::limits::Budget;
use super::stats::FlowStats;
use super::stream::{Delivery, Seen, Stream};
use crate::capture::Segment;

/// Pieces of one packet follow each other within microseconds.
const TAIL_PATIENCE: u64 = 20_000_000;
/// Excess bytes that come later than this after a response are nobody's.
const EXCESS_PATIENCE: u64 = 20_000_000;
/// A client that has sent its FIN and gets nothing for so long has left.
const LEFT_PATIENCE: u64 = 500_000_000;
/// A retransmission that fills a hole comes sooner, or the bytes were lost to the capture.
const HOLE_PATIENCE: u64 = 3_000_000_000;
/// A RST this far from the bytes seen is of another connection (RFC 5961, section 3).
const RST_REACH: i64 = 1 << 20;

/// What every call on a connection may touch.
pub(super) struct Shared<'a> {
    pub(super) budget: &'a mut Budget,
    pub(super) stats: &'a mut FlowStats,
    pub(super) events: &'a mut Vec<FlowEvent>,
    /// Somebody asks for the prefixes of prompts.
    pub(super) reads_prompts: bool,
}

/// Who a connection is between, and which one of that pair it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub(super) id: ConnectionId,
    pub(super) endpoint: SocketAddr,
    pub(super) peer: SocketAddr,
    pub(super) ifindex: u32,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) identity: Identity,
    pub(super) adopted: bool,
    /// Sequence number of the client's SYN.
    pub(super) client_syn: Option<u32>,
    /// Sequence number of the endpoint's SYN.
    pub(super) endpoint_syn: Option<u32>,
    pub(super) request: Stream,
    pub(super) response: Stream,
    http: Http,
    handshake: Handshake,
    closed_by: Option<Side>,
    client_ended: bool,
    endpoint_ended: bool,
    reset: bool,
    opened: bool,
    /// The table lists it among those that wait.
    pub(super) listed: bool,
    pub(super) last_stamp: Nanos,
}

impl Connection {
    pub(super) fn new(identity: Identity, adopted: bool, stamp: Nanos, pipeline: usize) -> Self {
        Self {
            identity,
            adopted,
            client_syn: None,
            endpoint_syn: None,
            request: Stream::default(),
            response: Stream::default(),
            http: Http::new(adopted, pipeline),
            handshake: Handshake::default(),
            closed_by: None,
            client_ended: false,
            endpoint_ended: false,
            reset: false,
            opened: false,
            listed: false,
            last_stamp: stamp,
        }
    }

    /// Requests that nobody has answered in full.
    #[cfg(test)]
    pub(super) fn in_flight(&self) -> usize {
        self.http.in_flight()
    }

    /// Requests whose observation is still to come, by their first sign.
    pub(super) fn open_requests(&self) -> impl Iterator<Item = Nanos> {
        self.http.open().map(|exchange| exchange.seen)
    }

    /// Its SYN came after its first bytes: it is not older than the agent.
    pub(super) fn begin_late(&mut self) {
        self.adopted = false;
        self.http.trust();
    }

    /// Takes one record of this connection.
    pub(super) fn take(&mut self, segment: &Segment<'_>, shared: &mut Shared<'_>) {
        self.last_stamp = self.last_stamp.max(segment.stamp);
        self.http.reads_prompts = shared.reads_prompts;
        self.handshake.note(segment);
        self.hear_other_side(segment, shared);
        if segment.flags.syn() {
            self.note_syn(segment, shared);
        }
        if segment.payload_len > 0 {
            self.take_payload(segment, shared);
        }
        if segment.flags.rst() {
            self.take_rst(segment, shared);
        } else if segment.flags.fin() {
            self.take_fin(segment);
        }
        self.take_ends();
        self.tell(shared);
    }

    /// What the sender says about the other direction: nothing before its ACK is still to come.
    fn hear_other_side(&mut self, segment: &Segment<'_>, shared: &mut Shared<'_>) {
        let Self { request, response, http, .. } = self;
        let Shared { budget, stats, .. } = shared;
        let (ack, stamp) = (segment.ack, segment.stamp);
        if segment.from_endpoint {
            let sink: &mut dyn FnMut(Delivery<'_>) = &mut |part| http.request(part, stats);
            request.settle_tails(budget, sink);
            if segment.flags.ack() {
                request.acked(ack, stamp, budget, sink);
            }
        } else {
            let sink: &mut dyn FnMut(Delivery<'_>) = &mut |part| http.response(part, stats);
            response.settle_tails(budget, sink);
            if segment.flags.ack() {
                // Without the SYN-ACK an ACK tells where responses go on, not where they began.
                let begun = response.seq().is_some();
                response.acked(ack, stamp, budget, sink);
                if !begun {
                    http.doubt();
                }
            }
        }
    }

    fn note_syn(&mut self, segment: &Segment<'_>, shared: &mut Shared<'_>) {
        let first = segment.seq.wrapping_add(1);
        if segment.from_endpoint {
            self.endpoint_syn.get_or_insert(segment.seq);
            self.response.begin(first);
            self.open(segment.stamp, shared);
        } else {
            self.client_syn.get_or_insert(segment.seq);
            self.request.begin(first);
        }
    }

    fn open(&mut self, stamp: Nanos, shared: &mut Shared<'_>) {
        if !std::mem::replace(&mut self.opened, true) {
            let endpoint = self.identity.endpoint;
            shared.events.push(FlowEvent::ConnectionOpened { endpoint, stamp });
        }
    }

    /// Neither its SYN nor an ACK of the client may have told where the responses begin.
    fn doubt_beginning(&mut self, segment: &Segment<'_>) {
        if segment.from_endpoint && self.response.seq().is_none() {
            self.http.doubt();
        }
    }

    fn take_payload(&mut self, segment: &Segment<'_>, shared: &mut Shared<'_>) {
        self.open(segment.stamp, shared);
        self.doubt_beginning(segment);
        let Self { request, response, http, .. } = self;
        let Shared { budget, stats, .. } = shared;
        let first_piece = segment.piece_offset == 0;
        if first_piece {
            stats.adopted_segments += u64::from(self.adopted);
        }
        let seen = if segment.from_endpoint {
            // Counted first: the segment may be the one that ends the response.
            if first_piece {
                http.count(Side::Endpoint, None);
            }
            response.insert(segment, budget, &mut |part| http.response(part, stats))
        } else {
            request.insert(segment, budget, &mut |part| http.request(part, stats))
        };
        book(seen, stats, http);
        if !first_piece || seen.stray {
            return;
        }
        let sight = if segment.from_endpoint { response } else { request }.compare(segment);
        stats.payload_bytes += sight.fresh;
        stats.retransmits += u64::from(sight.repeated);
        stats.second_views += u64::from(sight.second_view);
        if segment.from_endpoint {
            http.correct(sight.second_view, sight.repeated);
        } else if !sight.second_view {
            http.count(Side::Client, sight.repeated.then_some(segment.stamp));
        }
    }

    /// This host's TCP sent a segment of one direction again.
    pub(super) fn retransmitted(&mut self, from_endpoint: bool) {
        let side = if from_endpoint { Side::Endpoint } else { Side::Client };
        self.http.count_socket_retransmit(side);
    }

    fn side_stream(&mut self, from_endpoint: bool) -> (Side, &mut Stream) {
        if from_endpoint {
            (Side::Endpoint, &mut self.response)
        } else {
            (Side::Client, &mut self.request)
        }
    }

    fn take_fin(&mut self, segment: &Segment<'_>) {
        self.doubt_beginning(segment);
        let syn = u32::from(segment.flags.syn());
        let end = segment.seq.wrapping_add(syn).wrapping_add(segment.payload_len);
        let (side, stream) = self.side_stream(segment.from_endpoint);
        stream.begin(end);
        if stream.distance(end).is_some_and(|distance| distance >= 0) {
            stream.finish(end, segment.stamp);
            self.closed_by.get_or_insert(side);
        }
    }

    fn take_rst(&mut self, segment: &Segment<'_>, shared: &mut Shared<'_>) {
        let (side, stream) = self.side_stream(segment.from_endpoint);
        let distance = stream.distance(segment.seq);
        if distance.is_some_and(|distance| distance.abs() > RST_REACH) {
            shared.stats.stray_segments += 1;
            return;
        }
        self.closed_by.get_or_insert(side);
        self.give_up_holes(segment.stamp, shared);
        self.reset = true;
        self.http.reset(side, segment.stamp);
    }

    fn give_up_holes(&mut self, stamp: Nanos, shared: &mut Shared<'_>) {
        let Self { request, response, http, .. } = self;
        let Shared { budget, stats, .. } = shared;
        request.give_up_all(stamp, budget, &mut |part| http.request(part, stats));
        response.give_up_all(stamp, budget, &mut |part| http.response(part, stats));
    }

    /// Ends of directions, once everything before them has passed. The endpoint's comes first: it
    /// decides how its response ended.
    fn take_ends(&mut self) {
        if let Some(stamp) = self.response.ended().filter(|_| !self.endpoint_ended)
            && !self.reset
        {
            self.endpoint_ended = true;
            self.http.endpoint_fin(stamp);
        }
        if let Some(stamp) = self.request.ended().filter(|_| !self.client_ended)
            && !self.reset
        {
            self.client_ended = true;
            self.http.client_fin(stamp);
        }
    }

    /// Nothing more can come.
    pub(super) fn is_over(&self) -> bool {
        self.reset || (self.client_ended && self.endpoint_ended)
    }

    /// Time must pass before something can be told.
    pub(super) fn is_waiting(&self) -> bool {
        self.request.is_waiting()
            || self.response.is_waiting()
            || self.http.kept_since().is_some()
            || self.http.left_since().is_some()
    }

    /// It is `now`: gives up what has been waited for long enough.
    pub(super) fn settle(&mut self, now: Nanos, shared: &mut Shared<'_>) {
        let before = |patience: u64| Nanos::new(now.get().saturating_sub(patience));
        if self.last_stamp < before(TAIL_PATIENCE) {
            self.settle_tails(shared);
        }
        let oldest = before(HOLE_PATIENCE);
        if self.request.hole_older_than(oldest) || self.response.hole_older_than(oldest) {
            self.give_up_holes(self.last_stamp, shared);
        }
        self.take_ends();
        if self.http.kept_since().is_some_and(|end| end < before(EXCESS_PATIENCE)) {
            self.http.flush();
        }
        if self.http.left_since().is_some_and(|since| since < before(LEFT_PATIENCE)) {
            self.http.give_up_left();
        }
        self.tell(shared);
    }

    fn settle_tails(&mut self, shared: &mut Shared<'_>) {
        let Self { request, response, http, .. } = self;
        let Shared { budget, stats, .. } = shared;
        request.settle_tails(budget, &mut |part| http.request(part, stats));
        response.settle_tails(budget, &mut |part| http.response(part, stats));
    }

    /// Hands over what needs no more waiting, so that a window can be closed.
    pub(super) fn flush(&mut self, shared: &mut Shared<'_>) {
        self.settle_tails(shared);
        self.take_ends();
        self.http.hand_over();
        self.tell(shared);
    }

    /// The client has sent its FIN: what it left open ends there.
    pub(super) fn give_up_left(&mut self, shared: &mut Shared<'_>) {
        self.http.give_up_left();
        self.tell(shared);
    }

    /// The connection is over, or can't be followed any more: what is open has no verdict.
    pub(super) fn end(&mut self, stamp: Nanos, shared: &mut Shared<'_>) {
        self.http.abandon(stamp);
        self.request.clear(shared.budget);
        self.response.clear(shared.budget);
        self.tell(shared);
        if std::mem::take(&mut self.opened) {
            let endpoint = self.identity.endpoint;
            shared.events.push(FlowEvent::ConnectionClosed { endpoint, stamp });
        }
    }

    fn tell(&mut self, shared: &mut Shared<'_>) {
        let endpoint = self.identity.endpoint;
        for event in std::mem::take(&mut self.http.events) {
            shared.events.push(match event {
                HttpEvent::Started(stamp) => FlowEvent::RequestStarted { endpoint, stamp },
                HttpEvent::Ended(stamp) => FlowEvent::RequestEnded { endpoint, stamp },
                HttpEvent::Finished(exchange) => {
                    FlowEvent::Finished(Box::new(self.finished(*exchange)))
                }
            });
        }
    }

    fn finished(&self, mut exchange: Exchange) -> FinishedExchange {
        FinishedExchange {
            endpoint: self.identity.endpoint,
            peer: self.identity.peer,
            connection: self.identity.id,
            index: exchange.index,
            trace_id: exchange.trace_id,
            request_first: exchange.request_first,
            request_end: exchange.request_end,
            request_resent: exchange.request_resent,
            request_receipt: exchange.request_receipt,
            seen: exchange.seen,
            request_bytes: exchange.request_bytes(),
            prompt: exchange.take_prefixes(),
            opaque: exchange.opaque,
            doubtful: exchange.doubtful,
            unknowable: exchange.is_unknowable(),
            aborted: exchange.aborted,
            closed_by: self.closed_by,
            end: exchange.end,
            segments: exchange.segments,
            request_retransmits: exchange.retransmits[0],
            response_retransmits: exchange.retransmits[1],
            request_socket_retransmits: exchange.socket_retransmits[0],
            response_socket_retransmits: exchange.socket_retransmits[1],
            handshake_rtt_ns: self.handshake.endpoint_rtt(),
            client_rtt_upper_bound_ns: self.handshake.client_rtt_upper_bound(),
            adopted: self.adopted,
            ifindex: self.identity.ifindex,
            response: exchange.into_record(),
        }
    }
}

fn book(seen: Seen, stats: &mut FlowStats, http: &mut Http) {
    stats.stray_segments += u64::from(seen.stray);
    stats.evicted_flows += u64::from(seen.evicted);
    if seen.conflict {
        stats.conflicts += 1;
        http.contradicted();
    }
}
