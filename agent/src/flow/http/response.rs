//! The response direction: bytes to the request that they answer.

use protocol::Nanos;

use super::{Http, Mode, end_flight};
use crate::flow::stats::FlowStats;
use crate::flow::stream::Delivery;

impl Http {
    /// Takes a part of the response direction.
    pub(in crate::flow) fn response(&mut self, delivery: Delivery<'_>, stats: &mut FlowStats) {
        match delivery {
            Delivery::Bytes(bytes, stamp) => self.response_bytes(bytes, stamp, stats),
            Delivery::Unseen(len, stamp) | Delivery::Lost(len, stamp) => {
                stats.gaps += 1;
                self.response_lost(len, stamp, stats);
            }
        }
    }

    fn response_bytes(&mut self, mut bytes: &[u8], stamp: Nanos, stats: &mut FlowStats) {
        if let Some(exchange) = &mut self.opaque {
            exchange.pass_response(bytes.len() as u64);
            return;
        }
        while !bytes.is_empty() {
            let Some(at) = self.answering() else {
                self.unasked(bytes.len() as u64, stats);
                return;
            };
            let exchange = &mut self.queue[at];
            let opaque = exchange.opaque.is_some();
            let taken = exchange.feed_response(bytes, stamp).consumed;
            if opaque || exchange.opaque.is_some() {
                // The timeline takes what it can read, a tunnel's rest follows it.
                exchange.pass_response((bytes.len() - taken) as u64);
                self.go_dark(stats);
                self.keep_opaque(at, stamp);
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
        if let Some(exchange) = &mut self.opaque {
            exchange.pass_response(len);
            return;
        }
        while len > 0 {
            let Some(at) = self.answering() else {
                self.pass_unassigned(len, stats);
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

    fn unasked(&mut self, bytes: u64, stats: &mut FlowStats) {
        let live = self.mode == Mode::Live && !self.doubtful && self.client_closed.is_none();
        match self.last.as_deref_mut().or(self.queue.back_mut()) {
            Some(exchange) if live => exchange.excess(bytes),
            _ => self.pass_unassigned(bytes, stats),
        }
    }

    /// Response bytes that no known request asked for: the next response may have begun in them.
    fn pass_unassigned(&mut self, bytes: u64, stats: &mut FlowStats) {
        stats.unassigned_bytes += bytes;
        self.passed_by = true;
        self.doubtful = true;
    }
}
