//! Pending instants of one event loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use protocol::Nanos;

/// What happens to a connection at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// Its request's deadline passes.
    Deadline,
    /// The held last byte is written.
    Release,
    /// The delayed read is done.
    Read,
}

/// A heap of instants. Entries of connections that have ended stay until they come up.
#[derive(Debug, Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(Nanos, u64, Due)>>);

impl Timers {
    pub(super) fn add(&mut self, at: Nanos, connection: u64, due: Due) {
        self.0.push(Reverse((at, connection, due)));
    }

    pub(super) fn next(&self) -> Option<Nanos> {
        self.0.peek().map(|Reverse((at, _, _))| *at)
    }

    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<(u64, Due)> {
        if self.next()? > now {
            return None;
        }
        self.0.pop().map(|Reverse((_, connection, due))| (connection, due))
    }
}
