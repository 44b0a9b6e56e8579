//! An exported request as a line of `requests.jsonl`. Instants that no export holds stay null.

use protocol::{Nanos, Tpot, TraceId};

use super::ExportedRequest;
use crate::outcome::Class;
use crate::records::{FramingVerdict, RequestRecord, TpotUndefined, Versioned as _};

pub(super) fn record(index: u64, trace_id: TraceId, from: &ExportedRequest) -> RequestRecord {
    let planned_ns = Nanos::new(from.planned_ns);
    let sent = Nanos::new(from.sent_ns);
    let first_token = from.first_token_ns.map(Nanos::new);
    let (class, detail, tpot_ns, tpot_undefined) = outcome(from);
    RequestRecord {
        schema: RequestRecord::SCHEMA.to_owned(),
        index,
        trace_id,
        conn_id: None,
        conn_request_index: None,
        conn_reused: false,
        retries: 0,
        planned_ns,
        dispatched_ns: Some(sent),
        connected_ns: None,
        sent_ns: Some(sent),
        first_byte_ns: None,
        head_ns: None,
        first_event_ns: None,
        first_token_ns: first_token,
        first_content_token_ns: None,
        last_token_ns: from.last_token_ns.map(Nanos::new),
        done_ns: None,
        framing_end_ns: None,
        end_ns: Nanos::new(from.end_ns),
        stamp_source: None,
        coalesced_read: None,
        token_events: from.token_events,
        completion_tokens: from.completion_tokens,
        prompt_tokens: from.prompt_tokens,
        cached_tokens: from.cached_tokens,
        tokens_from: from.tokens_from,
        status: from.failure.as_ref().and_then(|failure| failure.status),
        finish_reason: None,
        retry_after: None,
        response_id: from.response_id.clone(),
        framing: FramingVerdict::Unknown,
        framing_rule: None,
        framing_offset: None,
        class,
        detail,
        names_server_timeout: from.failure.as_ref().is_some_and(|it| it.names_server_timeout),
        error_event: false,
        unreadable_payload: false,
        export_delivered: Some(class.is_delivered()),
        ttft_ns: first_token.map(|first| first.since(planned_ns)),
        ttft_from_sent_ns: first_token.map(|first| first.since(sent)),
        tpot_ns,
        tpot_undefined,
        request_bytes: 0,
        response_bytes: 0,
    }
}

fn outcome(from: &ExportedRequest) -> (Class, String, Option<u64>, Option<TpotUndefined>) {
    let no_token = || (Class::NoToken, "no token in the export".to_owned(), None, None);
    if let Some(failure) = &from.failure {
        return (failure.class, failure.detail.clone(), None, None);
    }
    let (Some(first), Some(last)) = (from.first_token_ns, from.last_token_ns) else {
        return no_token();
    };
    let span = Nanos::new(last).since(Nanos::new(first));
    match Tpot::new(span, from.completion_tokens.unwrap_or(0)) {
        Tpot::Value(value) => (Class::Ok, String::new(), Some(value.floor_ns()), None),
        Tpot::SingleToken => {
            (Class::SingleToken, String::new(), None, Some(TpotUndefined::SingleToken))
        }
        Tpot::Coalesced => (Class::Ok, String::new(), None, Some(TpotUndefined::Coalesced)),
        Tpot::NoToken => no_token(),
    }
}
