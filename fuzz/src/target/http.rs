//! HTTP/1.1 messages: any split gives the same verdict, and lost bytes never a broken rule.

use protocol::cases::cases;
use protocol::http1::{
    Close, Framing, Method, RequestDecoder, RequestEvent, ResponseDecoder, ResponseEvent,
};
use protocol::{Nanos, ResponseTimeline, StreamOutcome, TimelineRecord};

/// Scripts longer than this slow the search down and show nothing more.
const SEED_LIMIT: usize = 8 * 1024;

/// The first byte chooses how the rest is cut; every input is a message whatever it is.
fn cut(bytes: &[u8]) -> (usize, &[u8]) {
    match bytes.split_first() {
        Some((first, rest)) => (usize::from(*first) % 31 + 1, rest),
        None => (1, bytes),
    }
}

/// What a decoder made of a message.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    framing: Framing,
    complete: bool,
    bytes: u64,
    body: Vec<u8>,
    status: Option<u16>,
}

pub(super) fn response(input: &[u8]) {
    let (step, bytes) = cut(input);
    for method in [Method::Post, Method::Head, Method::Connect] {
        let whole = read_response(method, bytes, bytes.len().max(1));
        let pieces = read_response(method, bytes, step);
        assert_eq!(whole, pieces, "a response depends on how it is cut");
    }
}

fn read_response(method: Method, bytes: &[u8], step: usize) -> Verdict {
    let mut decoder = ResponseDecoder::new(method);
    let (mut body, mut status) = (Vec::new(), None);
    for piece in bytes.chunks(step) {
        let used = decoder.feed(piece, |event| match event {
            ResponseEvent::Head(head) => status = Some(head.status),
            ResponseEvent::Body { bytes, at } => {
                assert_eq!(piece.get(at..at + bytes.len()), Some(bytes), "body not where it says");
                body.extend_from_slice(bytes);
            }
            ResponseEvent::Interim(_) | ResponseEvent::End => {}
        });
        assert!(used == piece.len() || decoder.is_complete(), "bytes left without an end");
        if used < piece.len() {
            break;
        }
    }
    decoder.close(Close::Eof);
    let (framing, complete, bytes) = (decoder.framing(), decoder.is_complete(), decoder.bytes());
    Verdict { framing, complete, bytes, body, status }
}

pub(super) fn response_seeds() -> Vec<Vec<u8>> {
    let scripts = cases().into_iter().map(|case| case.bytes());
    scripts
        .filter(|bytes| bytes.len() < SEED_LIMIT)
        .map(|bytes| [&[7][..], &bytes].concat())
        .collect()
}

pub(super) fn request(input: &[u8]) {
    let (step, bytes) = cut(input);
    let whole = read_request(bytes, bytes.len().max(1));
    assert_eq!(whole, read_request(bytes, step), "a request depends on how it is cut");
}

fn read_request(bytes: &[u8], step: usize) -> Verdict {
    let mut decoder = RequestDecoder::new();
    let mut body = Vec::new();
    for piece in bytes.chunks(step) {
        let used = decoder.feed(piece, |event| {
            if let RequestEvent::Body { bytes, .. } = event {
                body.extend_from_slice(bytes);
            }
        });
        assert!(used == piece.len() || decoder.is_complete(), "bytes left without an end");
        if used < piece.len() {
            break;
        }
    }
    decoder.close(Close::Eof);
    let (framing, complete, bytes) = (decoder.framing(), decoder.is_complete(), decoder.bytes());
    Verdict { framing, complete, bytes, body, status: None }
}

pub(super) fn request_seeds() -> Vec<Vec<u8>> {
    const REQUESTS: [&[u8]; 7] = [
        b"\x05POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}",
        b"\x03POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2;x=y\r\nhi\r\n0\r\nt: v\r\n\r\n",
        b"\x02GET /health HTTP/1.0\r\n\r\n",
        b"\x09\r\nGET / HTTP/1.1\nhost: a\n\nGET / HTTP/1.1\r\nhost: a\r\n\r\n",
        b"\x01CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\n\r\n\x16\x03\x01",
        b"\x04PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x06POST / HTTP/1.1\r\nexpect: 100-continue\r\nupgrade: h2c\r\nconnection: upgrade\r\n\
          traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-a3ce929d0e0e4737-00\r\n\r\n",
    ];
    REQUESTS.iter().map(|bytes| bytes.to_vec()).collect()
}

/// A whole timeline, with losses: every byte of the input that is a multiple of 97 after the first
/// four makes the piece before it a gap.
pub(super) fn timeline(input: &[u8]) {
    let (step, bytes) = cut(input);
    let mut timeline = ResponseTimeline::new(Method::Post);
    let (mut now, mut lost) = (0, false);
    for piece in bytes.chunks(step * 8) {
        now += 1;
        let broken = invalid(timeline.record());
        if now > 4 && piece.first().is_some_and(|first| first % 97 == 0) {
            timeline.gap(piece.len() as u64, Nanos::new(now));
            lost = true;
        } else {
            let used = timeline.feed(piece, Nanos::new(now)).consumed;
            timeline.excess((piece.len() - used) as u64);
        }
        assert!(broken || !lost || !invalid(timeline.record()), "a rule broken by lost bytes");
    }
    timeline.close(Close::Eof, Nanos::new(now + 1));
    check(&timeline.into_record());
}

fn invalid(record: &TimelineRecord) -> bool {
    matches!(record.framing, Framing::Invalid { .. })
}

fn check(record: &TimelineRecord) {
    let outcome = StreamOutcome::of(record);
    assert_ne!(outcome, StreamOutcome::Open, "open after a close");
    if outcome.is_delivered() {
        assert_eq!(record.framing, Framing::Valid, "delivered without valid framing");
        assert_eq!(record.status(), Some(200), "delivered without status 200");
        assert!(record.first_token.is_some(), "delivered without a token");
        assert!(record.finish.is_some() || record.done.is_some(), "delivered without an end");
    }
    assert!(record.first_token <= record.last_token, "tokens out of order");
}
