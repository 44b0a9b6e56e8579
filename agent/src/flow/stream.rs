//! One direction of a connection: segments in, bytes in order out.

use protocol::Nanos;

use super::history::History;
use super::limits::Budget;
use super::parked::{Content, Parked, Piece};
use super::tail::{Tail, Tails};
use super::view::{Sight, Views};
use crate::capture::Segment;

/// A part of the stream, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery<'a> {
    /// Bytes, and the instant at which the last of them could be read in order.
    Bytes(&'a [u8], Nanos),
    /// So many bytes that passed and were not copied.
    Unseen(u64, Nanos),
    /// So many bytes that were never seen; the receiver has them, or nobody will.
    Lost(u64, Nanos),
}

/// What taking a segment's bytes showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// It repeated bytes with other content.
    pub(super) conflict: bool,
    /// It is too far ahead to be of this connection.
    pub(super) stray: bool,
    /// Parked bytes were given up because of a bound.
    pub(super) evicted: bool,
}

/// A window cannot be larger (RFC 7323, section 2.3).
const FARTHEST: i64 = 1 << 30;

/// One direction of a connection.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Sequence number at `next`; none before the direction's first sign.
    seq: Option<u32>,
    /// Bytes passed in order.
    next: u64,
    views: Views,
    parked: Parked,
    tails: Tails,
    history: History,
    /// No byte can be read in order before this instant.
    readable: Option<Nanos>,
    fin: Option<(u64, Nanos)>,
    /// When the first hole appeared.
    hole_since: Option<Nanos>,
}

type Sink<'s> = &'s mut dyn FnMut(Delivery<'_>);

impl Stream {
    /// The first payload byte has `seq`, unless that is known already.
    pub(super) fn begin(&mut self, seq: u32) {
        self.seq.get_or_insert(seq);
    }

    /// True when nothing has passed and the first payload byte is at `seq`.
    pub(super) fn begins_at(&self, seq: u32) -> bool {
        self.seq.is_some_and(|first| first.wrapping_sub(low(self.next)) == seq)
    }

    /// Sequence number after the bytes passed in order.
    pub(super) fn seq(&self) -> Option<u32> {
        self.seq
    }

    /// A hole or a tail is open, or an end has not been reached.
    pub(super) fn is_waiting(&self) -> bool {
        !self.parked.is_empty() || !self.tails.is_empty() || self.hole_since.is_some()
    }

    /// Signed distance of `seq` from the bytes passed; `None` before the direction's first sign.
    pub(super) fn distance(&self, seq: u32) -> Option<i64> {
        Some(i64::from(seq.wrapping_sub(self.seq?).cast_signed()))
    }

    /// Compares the range of a whole segment, which has been inserted, with those before it.
    pub(super) fn compare(&mut self, segment: &Segment<'_>) -> Sight {
        let first = segment.seq.wrapping_add(u32::from(segment.flags.syn()));
        let start = self.offset(first).unwrap_or(0);
        let end = start.saturating_add(i64::from(segment.payload_len));
        let at = |offset: i64| u64::try_from(offset).unwrap_or(0);
        self.views.see(segment.ifindex, at(start)..at(end))
    }

    fn offset(&self, seq: u32) -> Option<i64> {
        Some(self.next.cast_signed() + self.distance(seq)?)
    }

    /// Takes the payload of one record.
    pub(super) fn insert(
        &mut self,
        segment: &Segment<'_>,
        budget: &mut Budget,
        sink: Sink<'_>,
    ) -> Seen {
        // A SYN takes the number before its payload (RFC 9293, section 3.4).
        let first = segment.seq.wrapping_add(u32::from(segment.flags.syn()));
        let seq = first.wrapping_add(segment.piece_offset);
        let mut seen = Seen::default();
        if let Some(tail) = self.tails.left_by(segment.cpu, segment.ifindex, seq) {
            self.insert_unseen(tail, budget, sink);
        }
        self.begin(first);
        let Some(start) = self.offset(seq) else { return seen };
        let distance = start - self.next.cast_signed();
        if distance > FARTHEST {
            seen.stray = true;
            return seen;
        }
        // Keep-alive probes of some systems repeat the last byte with any content.
        if segment.payload_len == 1 && distance == -1 {
            return seen;
        }
        let covered = u32::try_from(segment.payload.len()).unwrap_or(u32::MAX);
        if covered > 0 && distance == 0 && self.parked.is_empty() {
            self.pass_bytes(segment.payload, segment.stamp, sink);
            self.release(budget, sink);
        } else if covered > 0 {
            let content = Content::Bytes(segment.payload.to_vec());
            self.place(start, (content, segment.stamp), &mut seen, budget, sink);
        }
        self.note_tail(segment, seq, covered, budget, sink);
        seen.evicted = self.keep_bounds(segment.stamp, budget, sink);
        seen
    }

    fn note_tail(
        &mut self,
        segment: &Segment<'_>,
        seq: u32,
        covered: u32,
        budget: &mut Budget,
        sink: Sink<'_>,
    ) {
        let len = segment.payload_len.saturating_sub(segment.piece_offset.saturating_add(covered));
        if len == 0 {
            return;
        }
        let tail = Tail {
            seq: seq.wrapping_add(covered),
            len,
            stamp: segment.stamp,
            ifindex: segment.ifindex,
            cpu: segment.cpu,
        };
        // A header-only record is the only one of its packet.
        let header_only = covered == 0 && segment.piece_offset == 0;
        let settled = if header_only { Some(tail) } else { self.tails.note(tail) };
        if let Some(tail) = settled {
            self.insert_unseen(tail, budget, sink);
        }
    }

    fn insert_unseen(&mut self, tail: Tail, budget: &mut Budget, sink: Sink<'_>) {
        let Some(start) = self.offset(tail.seq) else { return };
        let piece = (Content::Unseen(u64::from(tail.len)), tail.stamp);
        self.place(start, piece, &mut Seen::default(), budget, sink);
    }

    /// The other side has spoken, or time has passed: no further piece of open tails will come.
    pub(super) fn settle_tails(&mut self, budget: &mut Budget, sink: Sink<'_>) {
        for tail in self.tails.take_all() {
            self.insert_unseen(tail, budget, sink);
        }
    }

    /// Passes or parks a range that begins at `start`.
    fn place(
        &mut self,
        start: i64,
        (content, stamp): (Content, Nanos),
        seen: &mut Seen,
        budget: &mut Budget,
        sink: Sink<'_>,
    ) {
        let end = start.saturating_add_unsigned(content.len());
        let next = self.next.cast_signed();
        if start < next {
            self.compare_passed(start, end, &content, seen);
        }
        let mut at = start.max(next).cast_unsigned();
        let end = end.max(next).cast_unsigned();
        while at < end {
            if let Some((from, piece)) = self.parked.covering(at) {
                let until = end.min(from + piece.content.len());
                compare_parked(piece, from, &content, start, at..until, seen);
                at = until;
                continue;
            }
            let until = self.parked.next_start(at).map_or(end, |next| next.min(end));
            let part = part(&content, start, at, until);
            if at == self.next {
                self.pass(&Piece { content: part, stamp }, sink);
            } else {
                self.hole_since.get_or_insert(stamp);
                self.parked.insert(at, Piece { content: part, stamp }, budget);
            }
            at = until;
        }
        self.release(budget, sink);
    }

    fn compare_passed(&self, start: i64, end: i64, content: &Content, seen: &mut Seen) {
        let Content::Bytes(bytes) = content else { return };
        let next = self.next.cast_signed();
        let repeated = usize::try_from(next.min(end) - start).unwrap_or(0).min(bytes.len());
        let back = u64::try_from(next - end).unwrap_or(0);
        seen.conflict |= self.history.contradicts(&bytes[..repeated], back);
    }

    /// Hands over a piece that begins at `next`.
    fn pass(&mut self, piece: &Piece, sink: Sink<'_>) {
        match &piece.content {
            Content::Bytes(bytes) => self.pass_bytes(bytes, piece.stamp, sink),
            Content::Unseen(len) => {
                let stamp = self.raise(piece.stamp);
                self.advance(*len);
                self.history.clear();
                sink(Delivery::Unseen(*len, stamp));
            }
        }
    }

    fn pass_bytes(&mut self, bytes: &[u8], stamp: Nanos, sink: Sink<'_>) {
        let stamp = self.raise(stamp);
        self.advance(bytes.len() as u64);
        self.history.push(bytes);
        sink(Delivery::Bytes(bytes, stamp));
    }

    /// The instant at which bytes with `stamp` could be read: not before those ahead of them.
    fn raise(&mut self, stamp: Nanos) -> Nanos {
        let stamp = self.not_before(stamp);
        self.readable = Some(stamp);
        stamp
    }

    fn not_before(&self, stamp: Nanos) -> Nanos {
        self.readable.map_or(stamp, |readable| readable.max(stamp))
    }

    fn advance(&mut self, bytes: u64) {
        self.next += bytes;
        self.seq = self.seq.map(|seq| seq.wrapping_add(low(bytes)));
    }

    fn release(&mut self, budget: &mut Budget, sink: Sink<'_>) {
        while let Some(piece) = self.parked.take(self.next, budget) {
            self.pass(&piece, sink);
        }
        if self.parked.is_empty() && self.fin.is_none_or(|(at, _)| at <= self.next) {
            self.hole_since = None;
        }
    }

    /// The receiver has everything before `ack`: what was not seen by now never will be.
    pub(super) fn acked(&mut self, ack: u32, stamp: Nanos, budget: &mut Budget, sink: Sink<'_>) {
        self.begin(ack);
        let Some(end) = self.offset(ack).and_then(|end| u64::try_from(end).ok()) else { return };
        let end = self.fin.map_or(end, |(fin, _)| end.min(fin));
        if end.saturating_sub(self.next) <= FARTHEST.cast_unsigned() {
            self.give_up(end, stamp, budget, sink);
        }
    }

    /// Gives up every hole before `end`. The bytes behind a hole keep their own stamps, and what was
    /// lost passed before them.
    fn give_up(&mut self, end: u64, stamp: Nanos, budget: &mut Budget, sink: Sink<'_>) {
        while self.next < end {
            let until = self.parked.first().map_or(end, |first| first.min(end));
            let stamp = self.parked.first_stamp().map_or(stamp, |behind| behind.min(stamp));
            let lost = until - self.next;
            self.advance(lost);
            self.history.clear();
            sink(Delivery::Lost(lost, self.not_before(stamp)));
            self.release(budget, sink);
        }
    }

    /// Gives up everything still missing before the last byte known to exist.
    pub(super) fn give_up_all(&mut self, stamp: Nanos, budget: &mut Budget, sink: Sink<'_>) {
        self.settle_tails(budget, sink);
        let parked = self.parked.end().unwrap_or(self.next);
        let end = self.fin.map_or(parked, |(fin, _)| fin.max(parked));
        self.give_up(end, stamp, budget, sink);
    }

    fn keep_bounds(&mut self, stamp: Nanos, budget: &mut Budget, sink: Sink<'_>) -> bool {
        let mut evicted = false;
        while budget.exceeded(self.parked.cost()) {
            let Some(first) = self.parked.first() else { break };
            evicted = true;
            self.give_up(first, stamp, budget, sink);
        }
        evicted
    }

    /// The sender has no more data after `seq`.
    pub(super) fn finish(&mut self, seq: u32, stamp: Nanos) {
        let end = self.offset(seq).and_then(|end| u64::try_from(end).ok());
        let Some(end) = end.filter(|end| *end >= self.next) else { return };
        self.fin.get_or_insert((end, stamp));
        if end > self.next {
            self.hole_since.get_or_insert(stamp);
        }
    }

    /// When everything before the sender's end has been passed: the instant it could be known.
    pub(super) fn ended(&self) -> Option<Nanos> {
        let (end, stamp) = self.fin?;
        (self.next >= end && self.tails.is_empty()).then(|| self.not_before(stamp))
    }

    /// The oldest hole is older than `before`.
    pub(super) fn hole_older_than(&self, before: Nanos) -> bool {
        self.hole_since.is_some_and(|since| since < before)
    }

    /// Frees what is parked.
    pub(super) fn clear(&mut self, budget: &mut Budget) {
        self.parked.clear(budget);
        self.tails.take_all();
    }
}

/// The low 32 bits: sequence numbers are counted modulo 2^32 (RFC 9293, section 3.4).
fn low(offset: u64) -> u32 {
    let [.., a, b, c, d] = offset.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

fn index(offset: u64, start: i64) -> usize {
    usize::try_from(offset.cast_signed() - start).unwrap_or(0)
}

/// The part of `content`, which begins at `start`, from `at` to `until`.
fn part(content: &Content, start: i64, at: u64, until: u64) -> Content {
    match content {
        Content::Bytes(bytes) => {
            Content::Bytes(bytes[index(at, start)..index(until, start)].to_vec())
        }
        Content::Unseen(_) => Content::Unseen(until - at),
    }
}

fn compare_parked(
    piece: &Piece,
    from: u64,
    content: &Content,
    start: i64,
    range: std::ops::Range<u64>,
    seen: &mut Seen,
) {
    let (Content::Bytes(old), Content::Bytes(new)) = (&piece.content, content) else { return };
    let old = &old[index(range.start, from.cast_signed())..index(range.end, from.cast_signed())];
    seen.conflict |= old != &new[index(range.start, start)..index(range.end, start)];
}
