//! Scripted segments, and what must come of them.

mod adversary;
mod bodiless;
mod bounds;
mod ends;
mod loss;
mod network;
mod opaque;
mod order;
mod permutation;
mod pipeline;
mod prompts;
mod property;
mod reference;
mod reuse;
mod views;

use protocol::Nanos;

use super::*;
use crate::observation::Outcome;
use crate::testing::*;

/// A table that has taken `packets`, and what it told.
struct Told {
    table: FlowTable,
    finished: Vec<FinishedExchange>,
    started: Vec<u64>,
    ended: Vec<u64>,
    opened: usize,
    closed: usize,
}

impl Told {
    fn with(limits: FlowLimits) -> Self {
        Self {
            table: FlowTable::new([endpoint()], limits),
            finished: Vec::new(),
            started: Vec::new(),
            ended: Vec::new(),
            opened: 0,
            closed: 0,
        }
    }

    fn of<'a>(packets: impl IntoIterator<Item = &'a Packet>) -> Self {
        let mut told = Self::with(FlowLimits::default());
        told.take(packets);
        told
    }

    fn take<'a>(&mut self, packets: impl IntoIterator<Item = &'a Packet>) -> &mut Self {
        for packet in packets {
            self.table.take(&packet.segment());
            self.collect();
        }
        self
    }

    fn collect(&mut self) {
        for event in self.table.take_events() {
            match event {
                FlowEvent::Finished(exchange) => self.finished.push(*exchange),
                FlowEvent::RequestStarted { stamp, .. } => self.started.push(stamp.get()),
                FlowEvent::RequestEnded { stamp, .. } => self.ended.push(stamp.get()),
                FlowEvent::ConnectionOpened { .. } => self.opened += 1,
                FlowEvent::ConnectionClosed { .. } => self.closed += 1,
            }
        }
    }

    fn flush(&mut self) -> &mut Self {
        self.table.flush();
        self.collect();
        self
    }

    fn settle(&mut self, now: u64) -> &mut Self {
        self.table.settle(Nanos::new(now));
        self.collect();
        self
    }

    fn outcomes(&self) -> Vec<Outcome> {
        self.finished.iter().map(Outcome::of).collect()
    }

    /// The only exchange that finished.
    fn one(&mut self) -> FinishedExchange {
        self.flush();
        assert_eq!(self.finished.len(), 1, "{:?}", self.finished);
        self.finished[0].clone()
    }
}

fn ns(stamp: u64) -> Option<Nanos> {
    Some(Nanos::new(stamp))
}
