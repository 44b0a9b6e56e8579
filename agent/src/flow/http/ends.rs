//! How requests end: FIN, RST, silence, and what can't be followed any more.

use protocol::Nanos;
use protocol::http1::Close;

use super::{Http, HttpEvent, end_flight};
use crate::flow::event::Side;
use crate::flow::exchange::Exchange;

impl Http {
    /// The client has left a response unfinished: since when nothing has come.
    pub(in crate::flow) fn left_since(&self) -> Option<Nanos> {
        let closed = self.client_closed?;
        let newest = self.queue.iter().filter_map(Exchange::last_byte).max();
        (!self.queue.is_empty()).then(|| newest.map_or(closed, |newest| newest.max(closed)))
    }

    pub(super) fn finish_all(&mut self, stamp: Nanos) {
        self.flush();
        while let Some(mut exchange) = self.queue.pop_front() {
            self.events.extend(end_flight(&mut exchange, stamp));
            self.events.push(HttpEvent::Finished(Box::new(exchange)));
        }
    }

    /// The client sends no more.
    pub(in crate::flow) fn client_fin(&mut self, stamp: Nanos) {
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
    pub(in crate::flow) fn endpoint_fin(&mut self, stamp: Nanos) {
        self.endpoint_closed = true;
        self.close(Close::Eof, stamp);
    }

    /// The connection was reset by `side`.
    pub(in crate::flow) fn reset(&mut self, side: Side, stamp: Nanos) {
        if side == Side::Client {
            self.client_closed.get_or_insert(stamp);
        }
        self.close(Close::Reset, stamp);
    }

    /// The client left, and nothing has come since.
    pub(in crate::flow) fn give_up_left(&mut self) {
        if let Some(closed) = self.client_closed {
            self.close(Close::Eof, closed);
        }
    }

    fn close(&mut self, close: Close, stamp: Nanos) {
        self.end_opaque(stamp);
        for exchange in &mut self.queue {
            exchange.aborted = self.client_closed.is_some() && !exchange.response_complete();
            // From the client's FIN on, the request was nobody's.
            let end = self.client_closed.filter(|_| exchange.aborted).unwrap_or(stamp);
            exchange.close_response(close, end.max(exchange.seen));
        }
        self.finish_all(stamp);
    }

    /// What is open can't be followed any more.
    pub(in crate::flow) fn abandon(&mut self, stamp: Nanos) {
        self.end_opaque(stamp);
        for exchange in &mut self.queue {
            exchange.unknowable |= !exchange.response_complete();
        }
        self.finish_all(stamp);
    }
}
