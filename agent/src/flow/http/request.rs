//! The request direction: bytes to requests.

use protocol::Nanos;

use super::{Http, HttpEvent, Mode, begins_request};
use crate::flow::exchange::Exchange;
use crate::flow::stats::FlowStats;
use crate::flow::stream::Delivery;

impl Http {
    /// Takes a part of the request direction.
    pub(in crate::flow) fn request(&mut self, delivery: Delivery<'_>, stats: &mut FlowStats) {
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
        if self.mode == Mode::Dark {
            match self.dark() {
                Some(exchange) => exchange.pass_request(bytes),
                None => stats.unassigned_bytes += bytes.len() as u64,
            }
            return;
        }
        while !bytes.is_empty() {
            if self.out_of_step() {
                // Line ends before a request line are to be passed over (RFC 9112, section 2.2).
                let line = trim_line_ends(bytes);
                if !begins_request(line) {
                    self.pass_by(bytes, stamp, stats);
                    return;
                }
                bytes = line;
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
        if self.mode == Mode::Dark
            && let Some(exchange) = self.dark()
        {
            exchange.skip_request(len, known);
            return;
        }
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
        let exchange = Exchange::new(self.next_index, stamp, self.doubtful);
        let reads = self.reads_prompts;
        self.queue.push_back(if reads { exchange.reading_prompt() } else { exchange });
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
}

/// Empty lines between requests belong to none (RFC 9112, section 2.2).
fn trim_line_ends(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
    &bytes[start.unwrap_or(bytes.len())..]
}
