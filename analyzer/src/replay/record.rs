//! From what a connection saw to its line of `requests.jsonl`.

use protocol::http1::Framing;
use protocol::timeline::TokensFrom;
use protocol::{Nanos, TimelineRecord, Tpot, TraceId};

use super::connection::{Connection, StampTally};
use super::line::Line;
use crate::outcome::{Class, Ending, classify};
use crate::records::{
    FramingVerdict, RequestRecord, StampSource, TokensSource, TpotUndefined, Versioned as _,
};

/// A request that never got a connection: refused by the host, or never dispatched.
pub(super) fn without_connection(
    (index, trace_id, planned): (u64, TraceId, Nanos),
    dispatched: Option<Nanos>,
    end: Nanos,
    class: Class,
    detail: &str,
) -> RequestRecord {
    RequestRecord {
        dispatched_ns: dispatched,
        end_ns: end,
        class,
        detail: detail.to_owned(),
        ..blank(index, trace_id, planned)
    }
}

/// A request that had a connection, and the line under it.
pub(super) fn of_connection(
    connection: Connection,
    ending: &Ending,
    end: Nanos,
) -> (RequestRecord, Line) {
    let Connection {
        prepared,
        dispatched,
        connected,
        sent,
        written,
        stamps,
        coalesced,
        timeline,
        retries,
        line,
        ..
    } = connection;
    let response = timeline.into_record();
    let (class, detail) = classify(&response, ending);
    let planned = prepared.planned;
    let record = RequestRecord {
        conn_id: Some(line.id),
        conn_request_index: Some(line.requests - 1),
        conn_reused: line.requests > 1,
        retries,
        dispatched_ns: Some(dispatched),
        connected_ns: connected,
        sent_ns: sent,
        end_ns: end,
        stamp_source: stamp_source(stamps),
        coalesced_read: coalesced,
        class,
        detail,
        ttft_ns: response.ttft(planned),
        ttft_from_sent_ns: sent.and_then(|sent| response.ttft(sent)),
        request_bytes: wide(written),
        ..blank(prepared.index, prepared.trace_id, planned)
    };
    (with_tokens(with_response(record, &response), &response), line)
}

fn with_response(record: RequestRecord, response: &TimelineRecord) -> RequestRecord {
    let (framing, framing_rule, framing_offset) = match response.framing {
        Framing::Valid => (FramingVerdict::Valid, None, None),
        Framing::Invalid { rule, offset } => {
            (FramingVerdict::Invalid, Some(rule.code().to_owned()), Some(offset))
        }
        Framing::Incomplete | Framing::Unknown { .. } => (FramingVerdict::Unknown, None, None),
    };
    let head = response.head.as_ref();
    RequestRecord {
        first_byte_ns: response.first_byte,
        head_ns: head.map(|head| head.stamp),
        first_event_ns: response.first_event,
        first_token_ns: response.first_token,
        first_content_token_ns: response.first_content_token,
        last_token_ns: response.last_token,
        done_ns: response.done,
        framing_end_ns: response.framing_end,
        status: response.status(),
        names_server_timeout: response.names_server_timeout(),
        error_event: response.inband_error.is_some(),
        unreadable_payload: response.bad_payload.is_some()
            || matches!(response.framing, Framing::Unknown { .. }),
        finish_reason: response.finish.as_ref().map(|finish| finish.reason.clone()),
        retry_after: head.and_then(|head| head.retry_after.clone()),
        response_id: response.response_id.clone(),
        framing,
        framing_rule,
        framing_offset,
        response_bytes: response.bytes + response.excess_bytes,
        ..record
    }
}

fn with_tokens(record: RequestRecord, response: &TimelineRecord) -> RequestRecord {
    let (tokens, from) = response.output_tokens();
    let counted = from == TokensFrom::Usage || tokens > 0;
    let tpot = if record.class.is_delivered() { response.tpot() } else { Tpot::NoToken };
    RequestRecord {
        token_events: response.token_events,
        completion_tokens: counted.then_some(tokens),
        prompt_tokens: response.usage.and_then(|usage| usage.prompt_tokens),
        cached_tokens: response.usage.and_then(|usage| usage.cached_tokens),
        tokens_from: counted.then_some(match from {
            TokensFrom::Usage => TokensSource::Usage,
            TokensFrom::Chunks => TokensSource::Chunks,
        }),
        tpot_ns: tpot.value().map(protocol::timeline::TpotValue::floor_ns),
        tpot_undefined: match tpot {
            Tpot::SingleToken => Some(TpotUndefined::SingleToken),
            Tpot::Coalesced => Some(TpotUndefined::Coalesced),
            Tpot::Value(_) | Tpot::NoToken => None,
        },
        ..record
    }
}

fn stamp_source(stamps: StampTally) -> Option<StampSource> {
    match (stamps.kernel, stamps.clock) {
        (0, 0) => None,
        (_, 0) => Some(StampSource::Kernel),
        (0, _) => Some(StampSource::Clock),
        _ => Some(StampSource::Mixed),
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn blank(index: u64, trace_id: TraceId, planned: Nanos) -> RequestRecord {
    RequestRecord {
        schema: RequestRecord::SCHEMA.to_owned(),
        index,
        trace_id,
        conn_id: None,
        conn_request_index: None,
        conn_reused: false,
        retries: 0,
        planned_ns: planned,
        dispatched_ns: None,
        connected_ns: None,
        sent_ns: None,
        first_byte_ns: None,
        head_ns: None,
        first_event_ns: None,
        first_token_ns: None,
        first_content_token_ns: None,
        last_token_ns: None,
        done_ns: None,
        framing_end_ns: None,
        end_ns: planned,
        stamp_source: None,
        coalesced_read: None,
        token_events: 0,
        completion_tokens: None,
        prompt_tokens: None,
        cached_tokens: None,
        tokens_from: None,
        status: None,
        finish_reason: None,
        retry_after: None,
        response_id: None,
        framing: FramingVerdict::Unknown,
        framing_rule: None,
        framing_offset: None,
        class: Class::CancelledByTool,
        detail: String::new(),
        names_server_timeout: false,
        error_event: false,
        unreadable_payload: false,
        export_delivered: None,
        ttft_ns: None,
        ttft_from_sent_ns: None,
        tpot_ns: None,
        tpot_undefined: None,
        request_bytes: 0,
        response_bytes: 0,
    }
}
