//! The wire form of an observation: one line of `kernel.jsonl` (`docs/formats.md`).

use std::net::SocketAddr;

use protocol::http1::Framing;
use protocol::timeline::TokensFrom;
use protocol::{Nanos, TraceId};
use serde::Serialize;

use super::{Observation, Outcome, ReceiptFrom};
use crate::endpoint::{Leg, Role};
use crate::flow::{Opaque, Side};

/// Name and version of the form.
pub const SCHEMA: &str = "goodput.kernel/1";

/// What rows and summaries say when their stamps come from a capture file.
pub const FILE_CLOCK: &str = "file";

/// One line of `kernel.jsonl`; keys are written in this order.
#[derive(Clone, Debug, Serialize)]
pub struct KernelRow {
    schema: &'static str,
    trace_id: Option<TraceId>,
    endpoint: SocketAddr,
    leg: Leg,
    role: Role,
    peer: SocketAddr,
    connection: u64,
    request_index: u64,
    request_first_ns: Option<Nanos>,
    request_end_ns: Option<Nanos>,
    first_byte_ns: Option<Nanos>,
    head_ns: Option<Nanos>,
    first_event_ns: Option<Nanos>,
    first_token_ns: Option<Nanos>,
    last_token_ns: Option<Nanos>,
    done_ns: Option<Nanos>,
    framing_end_ns: Option<Nanos>,
    end_ns: Option<Nanos>,
    token_ns: Vec<u64>,
    token_events: u64,
    completion_tokens: Option<u64>,
    prompt_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    tokens_from: TokensFrom,
    status: Option<u16>,
    finish_reason: Option<String>,
    response_id: Option<String>,
    receipt_prefill: Option<SocketAddr>,
    receipt_decode: Option<SocketAddr>,
    receipt_from: Option<ReceiptFrom>,
    framing: &'static str,
    framing_rule: Option<&'static str>,
    framing_offset: Option<u64>,
    outcome: Outcome,
    closed_by: Option<&'static str>,
    request_bytes: u64,
    response_bytes: u64,
    segments: u64,
    retransmits: u64,
    request_retransmits: u64,
    response_retransmits: u64,
    request_socket_retransmits: u64,
    response_socket_retransmits: u64,
    request_resent_ns: Option<Nanos>,
    handshake_rtt_ns: Option<u64>,
    client_rtt_upper_bound_ns: Option<u64>,
    opaque: Option<&'static str>,
    adopted: bool,
    interface: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<&'static str>,
}

impl KernelRow {
    /// The row of `observation`.
    #[must_use]
    pub fn new(observation: &Observation) -> Self {
        let exchange = &observation.exchange;
        let record = &exchange.response;
        let (receipt, receipt_from) = observation.receipt().unzip();
        let (framing, framing_rule, framing_offset) = verdict(exchange.framing());
        Self {
            schema: SCHEMA,
            trace_id: exchange.trace_id,
            endpoint: exchange.endpoint,
            leg: observation.role.leg(),
            role: observation.role,
            peer: exchange.peer,
            connection: exchange.connection.0,
            request_index: exchange.index,
            request_first_ns: exchange.request_first,
            request_end_ns: exchange.request_end,
            first_byte_ns: record.first_byte,
            head_ns: record.head.as_ref().map(|head| head.stamp),
            first_event_ns: record.first_event,
            first_token_ns: record.first_token,
            last_token_ns: record.last_token,
            done_ns: record.done,
            framing_end_ns: record.framing_end,
            end_ns: exchange.end,
            token_ns: deltas(&record.token_stamps),
            token_events: record.token_events,
            completion_tokens: record.usage.and_then(|usage| usage.completion_tokens),
            prompt_tokens: record.usage.and_then(|usage| usage.prompt_tokens),
            cached_tokens: record.usage.and_then(|usage| usage.cached_tokens),
            tokens_from: record.output_tokens().1,
            status: record.status(),
            finish_reason: record.finish.as_ref().map(|finish| finish.reason.clone()),
            response_id: record.response_id.clone(),
            receipt_prefill: receipt.map(|it| it.prefill),
            receipt_decode: receipt.map(|it| it.decode),
            receipt_from,
            framing,
            framing_rule,
            framing_offset,
            outcome: observation.outcome(),
            closed_by: exchange.closed_by.map(|side| match side {
                Side::Client => "client",
                Side::Endpoint => "endpoint",
            }),
            request_bytes: exchange.request_bytes,
            response_bytes: record.bytes,
            segments: exchange.segments,
            retransmits: exchange.request_retransmits + exchange.response_retransmits,
            request_retransmits: exchange.request_retransmits,
            response_retransmits: exchange.response_retransmits,
            request_socket_retransmits: exchange.request_socket_retransmits,
            response_socket_retransmits: exchange.response_socket_retransmits,
            request_resent_ns: exchange.request_resent,
            handshake_rtt_ns: exchange.handshake_rtt_ns,
            client_rtt_upper_bound_ns: exchange.client_rtt_upper_bound_ns,
            opaque: exchange.opaque.map(|opaque| match opaque {
                Opaque::Tls => "tls",
                Opaque::Http2 => "http2",
                Opaque::Tunnel => "tunnel",
            }),
            adopted: exchange.adopted,
            interface: observation.interface.clone(),
            clock: None,
        }
    }

    /// The same row, saying that its stamps are those of a capture file.
    #[must_use]
    pub fn on_file_clock(self) -> Self {
        Self { clock: Some(FILE_CLOCK), ..self }
    }
}

/// A response cut short is as unknown as one whose bytes were lost.
fn verdict(framing: Framing) -> (&'static str, Option<&'static str>, Option<u64>) {
    match framing {
        Framing::Valid => ("valid", None, None),
        Framing::Invalid { rule, offset } => ("invalid", Some(rule.code()), Some(offset)),
        Framing::Incomplete | Framing::Unknown { .. } => ("unknown", None, None),
    }
}

/// The first stamp, then differences. Stamps never decrease.
fn deltas(stamps: &[Nanos]) -> Vec<u64> {
    let mut before = 0;
    let delta = |stamp: &Nanos| {
        let delta = stamp.get().saturating_sub(before);
        before = stamp.get();
        delta
    };
    stamps.iter().map(delta).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_delta_coded() {
        let stamps: Vec<_> = [5, 5, 9, 30].into_iter().map(Nanos::new).collect();
        assert_eq!(deltas(&stamps), [5, 0, 4, 21]);
        assert_eq!(deltas(&[]), Vec::<u64>::new());
    }
}
