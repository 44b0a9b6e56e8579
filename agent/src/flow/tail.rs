//! Segments of which only the first pieces have come so far.
//!
//! A packet's pieces are written back to back by one CPU. So the rest of a packet is known to be
//! uncopied once the same CPU writes anything else about the connection, or the other side answers.

use protocol::Nanos;

/// The part of a segment that no record has covered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    /// Sequence number of the first byte not covered.
    pub(super) seq: u32,
    /// Bytes not covered.
    pub(super) len: u32,
    pub(super) stamp: Nanos,
    pub(super) ifindex: u32,
    pub(super) cpu: u32,
}

/// CPUs whose packets may interleave on one connection; more than a few never do.
const MOST: usize = 8;

/// The tails of one direction, at most one per CPU.
#[derive(Debug, Default)]
pub(super) struct Tails {
    open: Vec<Tail>,
}

impl Tails {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes out what `cpu` has left behind by going on to a record that begins at `seq`.
    pub(super) fn left_by(&mut self, cpu: u32, ifindex: u32, seq: u32) -> Option<Tail> {
        let at = self.open.iter().position(|tail| tail.cpu == cpu)?;
        let tail = self.open.swap_remove(at);
        // The next piece of the same packet: its own tail replaces this one.
        (tail.seq != seq || tail.ifindex != ifindex).then_some(tail)
    }

    /// Notes what a record leaves open; answers the oldest one if there are too many.
    pub(super) fn note(&mut self, tail: Tail) -> Option<Tail> {
        self.open.push(tail);
        (self.open.len() > MOST).then(|| self.open.remove(0))
    }

    /// Takes out everything.
    pub(super) fn take_all(&mut self) -> Vec<Tail> {
        std::mem::take(&mut self.open)
    }
}
