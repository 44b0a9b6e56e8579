//! Runs the decoders over one response and keeps its record.

use super::payloads::{book, book_bad};
use super::record::{BadPayloadKind, BodyFormat, HeadInfo, TimelineRecord};
use crate::Nanos;
use crate::http1::{Close, Method, ResponseDecoder, ResponseEvent, ResponseHead, count};
use crate::openai::{MAX_NAME, MAX_TEXT, parse_error_body};
use crate::sse::{MAX_EVENT, SseItem, SseParser};

/// Bounds on what one timeline keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Token stamps kept; further ones only count and move `last_token`.
    pub token_stamps: usize,
    /// Bytes of one event, or of an unstreamed JSON body.
    pub event_bytes: usize,
    /// Bytes of the body of a status other than 200 that are looked at for its error.
    pub error_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { token_stamps: 128 * 1024, event_bytes: MAX_EVENT, error_bytes: 4 * 1024 }
    }
}

/// What one `feed` did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedReport {
    /// Bytes taken; fewer than given when the response ended before.
    pub consumed: usize,
    /// Token-bearing events that ended in this feed.
    pub token_events: u32,
    /// The stream's first token-bearing event ended in this feed.
    pub first_token: bool,
    /// Something other than line ends followed the first token-bearing event of this feed. The
    /// line ends that close an event and its chunk do not count: they travel with it.
    pub followed: bool,
    /// The response reached its own end, in this feed or before.
    pub complete: bool,
}

#[derive(Clone, Debug)]
enum Reader {
    Ignore,
    Events(Box<SseParser>),
    /// Collects a whole body up to a bound.
    Whole {
        body: Vec<u8>,
        limit: usize,
        overflow: bool,
    },
}

/// Timeline of the response to one request.
#[derive(Clone, Debug)]
pub struct ResponseTimeline {
    decoder: ResponseDecoder,
    stream: Stream,
}

/// The part of a timeline that the decoder's events are booked into.
#[derive(Clone, Debug)]
struct Stream {
    limits: Limits,
    reader: Reader,
    record: TimelineRecord,
    /// Place in the current feed after the first token-bearing event that ended in it.
    token_end: Option<usize>,
}

impl ResponseTimeline {
    /// A timeline for the response to a request with `method`, with default limits.
    #[must_use]
    pub fn new(method: Method) -> Self {
        Self::with_limits(method, Limits::default())
    }

    /// As [`Self::new`], with other limits.
    #[must_use]
    pub fn with_limits(method: Method, limits: Limits) -> Self {
        Self {
            decoder: ResponseDecoder::new(method),
            stream: Stream {
                limits,
                reader: Reader::Ignore,
                record: TimelineRecord::default(),
                token_end: None,
            },
        }
    }

    /// Takes bytes that arrived at `stamp`, up to the end of the response.
    pub fn feed(&mut self, bytes: &[u8], stamp: Nanos) -> FeedReport {
        let stream = &mut self.stream;
        stream.token_end = None;
        let token_events = stream.record.token_events;
        let consumed = self.decoder.feed(bytes, |event| stream.take(event, stamp));
        if consumed > 0 {
            stream.record.first_byte.get_or_insert(stamp);
            stream.record.last_byte = Some(stamp);
        }
        self.sync();
        let record = &self.stream.record;
        let ended = record.token_events - token_events;
        FeedReport {
            consumed,
            token_events: u32::try_from(ended).unwrap_or(u32::MAX),
            first_token: token_events == 0 && ended > 0,
            followed: self.stream.token_end.is_some_and(|at| has_content(&bytes[at..])),
            complete: self.is_complete(),
        }
    }

    /// `bytes` bytes of the connection were lost or not captured; they would have arrived by
    /// `stamp`. The verdict becomes unknown and the events that follow are not read. Answers how
    /// many of the bytes belong to this response.
    pub fn gap(&mut self, bytes: u64, stamp: Nanos) -> u64 {
        let taken = self.decoder.gap(bytes);
        if taken == 0 {
            return 0;
        }
        self.stream.reader = Reader::Ignore;
        self.stream.record.bytes_lost += taken;
        self.sync();
        if self.is_complete() {
            self.stream.record.framing_end.get_or_insert(stamp);
        }
        taken
    }

    /// `bytes` bytes followed this response's end although no request was outstanding.
    pub fn excess(&mut self, bytes: u64) {
        if self.is_complete() {
            self.stream.record.excess_bytes += bytes;
            self.decoder.excess(bytes);
            self.sync();
        }
    }

    /// The connection's receiving direction ended at `stamp`. Only the first call counts.
    pub fn close(&mut self, close: Close, stamp: Nanos) {
        if self.stream.record.close.is_some() {
            return;
        }
        self.stream.record.close = Some(close);
        self.stream.record.close_stamp = Some(stamp);
        let ends_message = self.decoder.close(close);
        if ends_message {
            self.stream.record.framing_end = Some(stamp);
        }
        self.stream.end_body(ends_message);
        self.sync();
    }

    /// The response has reached its own end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.decoder.is_complete()
    }

    /// The connection may carry another response.
    #[must_use]
    pub fn keep_alive(&self) -> bool {
        self.decoder.keep_alive()
    }

    /// What is known so far.
    #[must_use]
    pub fn record(&self) -> &TimelineRecord {
        &self.stream.record
    }

    /// What is known, for keeps.
    #[must_use]
    pub fn into_record(self) -> TimelineRecord {
        self.stream.record
    }

    fn sync(&mut self) {
        let record = &mut self.stream.record;
        record.bytes = self.decoder.bytes();
        record.framing = self.decoder.framing();
        if record.tolerated != *self.decoder.tolerated() {
            record.tolerated = self.decoder.tolerated().clone();
        }
    }
}

fn has_content(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| !matches!(byte, b'\r' | b'\n'))
}

impl Stream {
    fn take(&mut self, event: ResponseEvent<'_>, stamp: Nanos) {
        match event {
            ResponseEvent::Interim(_) => self.record.interim_responses += 1,
            ResponseEvent::Head(head) => self.take_head(&head, stamp),
            ResponseEvent::Body { bytes, at } => self.take_body(bytes, at, stamp),
            ResponseEvent::End => {
                self.record.framing_end = Some(stamp);
                self.end_body(true);
            }
        }
    }

    fn take_head(&mut self, head: &ResponseHead<'_>, stamp: Nanos) {
        let short = |name: &str, limit: usize| {
            let value = head.fields.get(name)?;
            Some(String::from_utf8_lossy(value).chars().take(limit).collect::<String>())
        };
        let info = HeadInfo {
            stamp,
            status: head.status,
            version_minor: head.version_minor,
            content_type: short("content-type", MAX_NAME),
            content_encoding: short("content-encoding", MAX_NAME),
            retry_after: short("retry-after", MAX_NAME),
            request_id: short("x-request-id", MAX_TEXT),
            body: head.body,
            keep_alive: head.keep_alive,
        };
        let format = body_format(&info, head.transfer_coded);
        self.record.opaque_encoding = format == BodyFormat::Opaque;
        self.record.body_format = format;
        self.reader = reader(format, &self.limits);
        self.record.head = Some(info);
    }

    fn take_body(&mut self, bytes: &[u8], at: usize, stamp: Nanos) {
        self.record.body_bytes += count(bytes.len());
        self.record.last_body_byte = Some(stamp);
        let Self { limits, reader, record, token_end } = self;
        match reader {
            Reader::Ignore => {}
            Reader::Events(parser) => parser.feed(bytes, |item, end| {
                if book(record, item, stamp, limits.token_stamps) {
                    token_end.get_or_insert(at + end);
                }
            }),
            Reader::Whole { body, limit, overflow } => {
                let room = limit.saturating_sub(body.len()).min(bytes.len());
                body.extend_from_slice(&bytes[..room]);
                *overflow |= room < bytes.len();
            }
        }
    }

    /// The body ended, by itself or by a close.
    fn end_body(&mut self, whole: bool) {
        match std::mem::replace(&mut self.reader, Reader::Ignore) {
            Reader::Ignore => {}
            Reader::Events(parser) => {
                self.record.unterminated_event = parser.has_unterminated_event();
            }
            Reader::Whole { body, overflow, .. } => self.end_whole(&body, overflow, whole),
        }
    }

    fn end_whole(&mut self, body: &[u8], overflow: bool, whole: bool) {
        let stamp = self.record.last_body_byte;
        match (self.record.body_format, stamp) {
            (BodyFormat::Error, _) => {
                self.record.http_error = Some(parse_error_body(body));
            }
            (BodyFormat::Json, Some(stamp)) if whole && overflow => {
                book_bad(&mut self.record, BadPayloadKind::TooLarge, stamp);
            }
            (BodyFormat::Json, Some(stamp)) if whole => {
                let item = SseItem::Event { kind: b"", data: body };
                book(&mut self.record, item, stamp, self.limits.token_stamps);
            }
            _ => {}
        }
    }
}

fn body_format(head: &HeadInfo, transfer_coded: bool) -> BodyFormat {
    let identity = |coding: &String| coding.is_empty() || coding.eq_ignore_ascii_case("identity");
    let coded = transfer_coded || !head.content_encoding.as_ref().is_none_or(identity);
    let content_type = head.content_type.as_deref().unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    match head.status {
        _ if coded => BodyFormat::Opaque,
        200 if media_type.eq_ignore_ascii_case("application/json") => BodyFormat::Json,
        200 => BodyFormat::EventStream,
        _ => BodyFormat::Error,
    }
}

fn reader(format: BodyFormat, limits: &Limits) -> Reader {
    let whole = |limit| Reader::Whole { body: Vec::new(), limit, overflow: false };
    match format {
        BodyFormat::None | BodyFormat::Opaque => Reader::Ignore,
        BodyFormat::EventStream => Reader::Events(Box::new(SseParser::new(limits.event_bytes))),
        BodyFormat::Json => whole(limits.event_bytes),
        BodyFormat::Error => whole(limits.error_bytes),
    }
}
