//! One request and its response.

use protocol::http1::{Close, Framing, Method, RequestDecoder, RequestEvent, UnknownCause};
use protocol::receipt::Receipt;
use protocol::timeline::FeedReport;
use protocol::{Nanos, ResponseTimeline, TimelineRecord, TraceId, TraceParent};

use super::event::Opaque;
use crate::prompt::{Prefixes, PromptHasher};

/// Bytes at the start of a request that tell other protocols from HTTP/1.
const OPENING: usize = 16;
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0";
const TLS_HANDSHAKE: &[u8] = &[0x16, 0x03];

/// One request and its response, as far as they were seen.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) index: u64,
    request: RequestDecoder,
    opening: Vec<u8>,
    pub(super) request_first: Option<Nanos>,
    pub(super) request_end: Option<Nanos>,
    /// See [`super::event::FinishedExchange::request_resent`].
    pub(super) request_resent: Option<Nanos>,
    pub(super) seen: Nanos,
    pub(super) trace_id: Option<TraceId>,
    pub(super) request_receipt: Option<Receipt>,
    method: Option<Method>,
    /// Reads the prompt's prefixes; `None` while nobody asks for them.
    prompt: Option<Box<PromptHasher>>,
    response: Option<ResponseTimeline>,
    pub(super) opaque: Option<Opaque>,
    /// See [`super::event::FinishedExchange::doubtful`].
    pub(super) doubtful: bool,
    /// See [`super::event::FinishedExchange::unknowable`].
    pub(super) unknowable: bool,
    pub(super) aborted: bool,
    /// Counted as in flight.
    pub(super) in_flight: bool,
    pub(super) end: Option<Nanos>,
    pub(super) segments: u64,
    /// Segments that repeated bytes: of the request, of the response.
    pub(super) retransmits: [u64; 2],
    /// The same as reported by this host's TCP.
    pub(super) socket_retransmits: [u64; 2],
    /// Every byte of the request's and the response's direction since the request began.
    passed: [u64; 2],
}

impl Exchange {
    /// A request whose first sign is at `seen`.
    pub(super) fn new(index: u64, seen: Nanos, doubtful: bool) -> Self {
        Self {
            index,
            request: RequestDecoder::new(),
            opening: Vec::new(),
            request_first: None,
            request_end: None,
            request_resent: None,
            seen,
            trace_id: None,
            request_receipt: None,
            method: None,
            prompt: None,
            response: None,
            opaque: None,
            doubtful,
            unknowable: false,
            aborted: false,
            in_flight: true,
            end: None,
            segments: 0,
            retransmits: [0; 2],
            socket_retransmits: [0; 2],
            passed: [0; 2],
        }
    }

    /// The same, with the prefixes of its prompt hashed while they pass.
    pub(super) fn reading_prompt(mut self) -> Self {
        self.prompt = Some(Box::new(PromptHasher::new()));
        self
    }

    /// Bytes of its connection were repeated with other content.
    pub(super) fn contradict(&mut self) {
        self.unknowable = true;
        if let Some(prompt) = &mut self.prompt {
            prompt.doubt();
        }
    }

    /// What was hashed of the prompt.
    pub(super) fn take_prefixes(&mut self) -> Option<Prefixes> {
        let whole = self.request.is_complete();
        self.prompt.take().map(|prompt| if whole { prompt.finish_whole() } else { prompt.finish() })
    }

    /// Takes request bytes; answers how many belong to this request.
    pub(super) fn feed_request(&mut self, bytes: &[u8], stamp: Nanos) -> usize {
        self.request_first.get_or_insert(stamp);
        self.look_at_opening(bytes);
        if self.opaque.is_some() {
            self.passed[0] += bytes.len() as u64;
            return bytes.len();
        }
        let Self { request, trace_id, request_receipt, method, prompt, .. } = self;
        let taken = request.feed(bytes, |event| match event {
            RequestEvent::Head(head) => {
                *method = Some(Method::from_token(head.method));
                let parent = head.fields.get(TraceParent::HEADER).map(TraceParent::parse);
                *trace_id = parent.and_then(Result::ok).map(|parent| parent.trace_id);
                *request_receipt = head.fields.text("x-request-id").and_then(Receipt::find);
            }
            RequestEvent::Body { bytes, .. } => {
                if let Some(prompt) = prompt {
                    prompt.feed(bytes);
                }
            }
            RequestEvent::End => {}
        });
        if self.request.is_complete() {
            self.request_end.get_or_insert(stamp);
        }
        self.passed[0] += taken as u64;
        taken
    }

    fn look_at_opening(&mut self, bytes: &[u8]) {
        let room = OPENING - self.opening.len();
        self.opening.extend_from_slice(&bytes[..room.min(bytes.len())]);
        if self.opening.starts_with(HTTP2_PREFACE) {
            self.opaque = Some(Opaque::Http2);
        } else if self.opening.starts_with(TLS_HANDSHAKE) {
            self.opaque = Some(Opaque::Tls);
        }
    }

    /// Request bytes passed uncopied; `stamp` is known unless they were never seen at all.
    pub(super) fn skip_request(&mut self, bytes: u64, stamp: Option<Nanos>) -> u64 {
        if self.opaque.is_some() {
            self.passed[0] += bytes;
            return bytes;
        }
        if let Some(prompt) = &mut self.prompt {
            prompt.lose();
        }
        let taken = self.request.skip(bytes);
        self.passed[0] += taken;
        if self.request.is_complete() && self.request_end.is_none() {
            self.request_end = stamp;
        }
        taken
    }

    /// Request bytes were repeated at `stamp`.
    pub(super) fn resent(&mut self, stamp: Nanos) {
        if self.response.is_none() {
            self.request_resent = Some(stamp);
        }
    }

    /// The request was seen to its end.
    pub(super) fn request_complete(&self) -> bool {
        self.request.is_complete()
    }

    /// The request's end can't be found: what follows may belong to it or to the next.
    pub(super) fn request_lost(&self) -> bool {
        matches!(
            self.request.framing(),
            Framing::Invalid { .. } | Framing::Unknown { why: UnknownCause::LostBytes }
        )
    }

    /// The request's method was not seen, so how its response ends is a guess (RFC 9112, section 6.3).
    fn method_lost(&self) -> bool {
        self.method.is_none() && self.opaque.is_none() && self.request_lost()
    }

    /// See [`super::event::FinishedExchange::unknowable`].
    pub(super) fn is_unknowable(&self) -> bool {
        self.unknowable || (self.method_lost() && !self.response_complete())
    }

    pub(super) fn request_bytes(&self) -> u64 {
        if self.opaque.is_some() { self.passed[0] } else { self.request.bytes() }
    }

    /// Bytes of an opaque connection passed from the client. Those that follow an upgrade may show
    /// what it was to (RFC 7540, section 3.2).
    pub(super) fn pass_request(&mut self, bytes: &[u8]) {
        if self.opaque == Some(Opaque::Tunnel) && bytes.starts_with(HTTP2_PREFACE) {
            self.opaque = Some(Opaque::Http2);
        }
        self.passed[0] += bytes.len() as u64;
    }

    /// So many bytes of an opaque connection passed from the endpoint.
    pub(super) fn pass_response(&mut self, bytes: u64) {
        self.passed[1] += bytes;
    }

    fn timeline(&mut self) -> &mut ResponseTimeline {
        let method = self.method.unwrap_or(Method::Post);
        self.response.get_or_insert_with(|| ResponseTimeline::new(method))
    }

    /// Takes response bytes.
    pub(super) fn feed_response(&mut self, bytes: &[u8], stamp: Nanos) -> FeedReport {
        let report = self.timeline().feed(bytes, stamp);
        self.look_at_response();
        self.passed[1] += report.consumed as u64;
        report
    }

    fn look_at_response(&mut self) {
        let Some(response) = &self.response else { return };
        let record = response.record();
        if matches!(record.framing, Framing::Unknown { why: UnknownCause::Opaque }) {
            self.opaque = Some(Opaque::Tunnel);
        }
        if response.is_complete() {
            self.end = self.end.or(record.framing_end);
        }
    }

    /// Response bytes were lost; answers how many belong to this response.
    pub(super) fn lose_response(&mut self, bytes: u64, stamp: Nanos) -> u64 {
        let taken = self.timeline().gap(bytes, stamp);
        self.look_at_response();
        self.passed[1] += taken;
        taken
    }

    /// Bytes followed the response although no request was outstanding.
    pub(super) fn excess(&mut self, bytes: u64) {
        self.timeline().excess(bytes);
    }

    /// The response's direction ended.
    pub(super) fn close_response(&mut self, close: Close, stamp: Nanos) {
        if !self.response_complete() {
            self.timeline().close(close, stamp);
            self.end.get_or_insert(stamp);
        }
    }

    /// The response reached its own end.
    pub(super) fn response_complete(&self) -> bool {
        self.response.as_ref().is_some_and(ResponseTimeline::is_complete)
    }

    /// Nothing more is to come, but for excess bytes. A request whose end can't be found has none to
    /// wait for.
    pub(super) fn is_complete(&self) -> bool {
        self.response_complete() && (self.request_complete() || self.request_lost())
    }

    /// Response bytes were lost: where it ends may not be known.
    pub(super) fn response_lost(&self) -> bool {
        let lost = Framing::Unknown { why: UnknownCause::LostBytes };
        self.response.as_ref().is_some_and(|response| response.record().framing == lost)
    }

    /// The response broke a rule: no end will be found.
    pub(super) fn response_invalid(&self) -> bool {
        let framing = self.response.as_ref().map(|response| response.record().framing);
        matches!(framing, Some(Framing::Invalid { .. }))
    }

    /// The response's evidence.
    pub(super) fn into_record(self) -> TimelineRecord {
        let mut record = self.response.map(ResponseTimeline::into_record).unwrap_or_default();
        if self.opaque.is_some() {
            record.bytes = self.passed[1];
        }
        record
    }

    /// Last sign of the response.
    pub(super) fn last_byte(&self) -> Option<Nanos> {
        self.response.as_ref().and_then(|response| response.record().last_byte)
    }
}
