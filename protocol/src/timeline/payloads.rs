//! Books what the events of one stream say into the record.

use super::record::{BadPayload, BadPayloadKind, Finish, InbandError, TimelineRecord};
use crate::Nanos;
use crate::openai::{Chunk, ErrorInfo, Payload};
use crate::sse::SseItem;

/// Books one item; true when it bears a token.
pub(super) fn book(
    record: &mut TimelineRecord,
    item: SseItem<'_>,
    stamp: Nanos,
    token_cap: usize,
) -> bool {
    match item {
        SseItem::Comment => {
            record.comments += 1;
            record.last_comment = Some(stamp);
            false
        }
        SseItem::TooLarge => {
            book_event(record, stamp);
            book_bad(record, BadPayloadKind::TooLarge, stamp);
            false
        }
        SseItem::Event { kind, data } => {
            book_event(record, stamp);
            book_payload(record, kind == b"error", Payload::parse(data), stamp, token_cap)
        }
    }
}

fn book_event(record: &mut TimelineRecord, stamp: Nanos) {
    record.events += 1;
    record.first_event.get_or_insert(stamp);
    record.last_event = Some(stamp);
}

pub(super) fn book_bad(record: &mut TimelineRecord, kind: BadPayloadKind, stamp: Nanos) {
    record.bad_payload.get_or_insert(BadPayload { stamp, kind });
}

fn book_payload(
    record: &mut TimelineRecord,
    named_error: bool,
    payload: Payload,
    stamp: Nanos,
    token_cap: usize,
) -> bool {
    match payload {
        Payload::Done => {
            record.done.get_or_insert(stamp);
        }
        Payload::Empty if !named_error => {}
        Payload::Chunk(chunk) => return book_chunk(record, chunk, named_error, stamp, token_cap),
        Payload::Bad if !named_error => book_bad(record, BadPayloadKind::NotAChunk, stamp),
        Payload::Empty | Payload::Bad => book_error(record, ErrorInfo::default(), stamp),
    }
    false
}

fn book_chunk(
    record: &mut TimelineRecord,
    chunk: Chunk,
    named_error: bool,
    stamp: Nanos,
    token_cap: usize,
) -> bool {
    if let Some(error) = chunk.error.or_else(|| named_error.then(ErrorInfo::default)) {
        book_error(record, error, stamp);
    }
    if record.response_id.is_none() {
        record.response_id = chunk.id;
    }
    if let Some(usage) = chunk.usage {
        record.usage = Some(usage);
    }
    if let Some(reason) = chunk.finish_reason {
        if matches!(reason.as_str(), "abort" | "error") {
            let error = ErrorInfo { code: Some(reason.clone()), ..ErrorInfo::default() };
            book_error(record, error, stamp);
        }
        record.finish = Some(Finish { reason, stamp });
    }
    if chunk.has_content {
        record.first_content_token.get_or_insert(stamp);
    }
    if chunk.has_token {
        book_token(record, stamp, token_cap);
    }
    chunk.has_token
}

fn book_error(record: &mut TimelineRecord, error: ErrorInfo, stamp: Nanos) {
    record.inband_error.get_or_insert(InbandError { stamp, error });
}

fn book_token(record: &mut TimelineRecord, stamp: Nanos, token_cap: usize) {
    record.token_events += 1;
    record.token_events_after_done += u64::from(record.done.is_some());
    record.first_token.get_or_insert(stamp);
    record.last_token = Some(stamp);
    if record.token_stamps.len() < token_cap {
        record.token_stamps.push(stamp);
    } else {
        record.token_stamps_overflow = true;
    }
}
