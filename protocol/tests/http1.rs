//! Decoding of whole messages: bodies, ends, keep-alive, lost bytes.

use protocol::http1::{
    BodyKind, Close, Framing, Method, RequestDecoder, RequestEvent, ResponseDecoder, ResponseEvent,
    UnknownCause,
};

fn body_of(method: Method, message: &[u8]) -> (Framing, usize, Vec<u8>) {
    let mut decoder = ResponseDecoder::new(method);
    let mut body = Vec::new();
    let taken = decoder.feed(message, |event| {
        if let ResponseEvent::Body { bytes, .. } = event {
            body.extend_from_slice(bytes);
        }
    });
    (decoder.framing(), taken, body)
}

#[test]
fn bodiless_responses_end_with_their_head() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
    assert_eq!(body_of(Method::Head, head), (Framing::Valid, head.len(), vec![]));
    for status in ["204 No Content", "304 Not Modified"] {
        let message = format!("HTTP/1.1 {status}\r\n\r\nHTTP/1.1 200 OK\r\n");
        let (framing, taken, body) = body_of(Method::Post, message.as_bytes());
        assert_eq!((framing, taken, body), (Framing::Valid, status.len() + 13, vec![]));
    }
}

#[test]
fn tunnels_are_not_judged() {
    let opaque = Framing::Unknown { why: UnknownCause::Opaque };
    let upgraded = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n\x00\x01anything";
    assert_eq!(body_of(Method::Other, upgraded), (opaque, upgraded.len(), vec![]));
    let connected = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabcdef";
    assert_eq!(body_of(Method::Connect, connected), (opaque, connected.len(), vec![]));
}

#[test]
fn a_response_coded_but_not_chunked_ends_with_the_connection() {
    let mut decoder = ResponseDecoder::new(Method::Post);
    let mut coded = false;
    decoder.feed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nxx", |event| {
        if let ResponseEvent::Head(head) = event {
            coded = head.transfer_coded && head.body == BodyKind::UntilClose;
        }
    });
    assert!(coded);
    assert!(decoder.close(Close::Eof));
    assert_eq!(decoder.framing(), Framing::Valid);
}

#[test]
fn a_reset_never_ends_a_message() {
    let mut decoder = ResponseDecoder::new(Method::Post);
    decoder.feed(b"HTTP/1.1 200 OK\r\n\r\nxx", |_| {});
    assert!(!decoder.close(Close::Reset));
    assert_eq!(decoder.framing(), Framing::Incomplete);
}

#[test]
fn keep_alive_follows_version_and_connection() {
    let keeps = |head: &str| {
        let mut decoder = ResponseDecoder::new(Method::Post);
        decoder.feed(head.as_bytes(), |_| {});
        decoder.keep_alive()
    };
    let tail = "content-length: 0\r\n\r\n";
    assert!(keeps(&format!("HTTP/1.1 200 OK\r\n{tail}")));
    assert!(!keeps(&format!("HTTP/1.1 200 OK\r\nconnection: x, Close\r\n{tail}")));
    assert!(!keeps(&format!("HTTP/1.0 200 OK\r\n{tail}")));
    assert!(keeps(&format!("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n{tail}")));
    assert!(!keeps("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn lost_bytes_make_the_verdict_unknown_but_keep_the_position() {
    let lost = Framing::Unknown { why: UnknownCause::LostBytes };
    let mut decoder = ResponseDecoder::new(Method::Post);
    decoder.feed(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nab", |_| {});
    assert_eq!(decoder.gap(6), 6);
    assert_eq!(decoder.feed(b"cdHTTP", |_| {}), 2);
    assert!(decoder.is_complete());
    assert_eq!(decoder.framing(), lost);

    let mut decoder = ResponseDecoder::new(Method::Post);
    decoder.feed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\na\r\nab", |_| {});
    assert_eq!(decoder.gap(8), 8);
    assert_eq!(decoder.feed(b"\r\n0\r\n\r\nHTTP", |_| {}), 7);
    assert!(decoder.is_complete());
    assert_eq!(decoder.framing(), lost);
}

#[test]
fn garbage_after_lost_framing_is_not_called_invalid() {
    let lost = Framing::Unknown { why: UnknownCause::LostBytes };
    let mut decoder = ResponseDecoder::new(Method::Post);
    decoder.feed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nab", |_| {});
    assert_eq!(decoder.gap(8), 8);
    assert_eq!(decoder.feed(b"zzz\r\n", |_| {}), 5);
    assert_eq!(decoder.framing(), lost);
    let mut decoder = ResponseDecoder::new(Method::Post);
    decoder.gap(1);
    decoder.feed(b"zzz\r\n", |_| {});
    assert_eq!(decoder.framing(), lost);
}

#[test]
fn a_gap_may_reach_into_the_next_response() {
    let mut decoder = ResponseDecoder::new(Method::Post);
    decoder.feed(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nab", |_| {});
    assert_eq!(decoder.gap(100), 8);
    assert!(decoder.is_complete());
    assert_eq!(decoder.gap(92), 0);
}

#[test]
fn a_request_gives_method_target_and_fields() {
    let message = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n\
        Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00\r\n\
        content-length: 4\r\n\r\nbodyGET";
    let mut decoder = RequestDecoder::new();
    let mut seen = Vec::new();
    let taken = decoder.feed(message, |event| match event {
        RequestEvent::Head(head) => {
            assert_eq!((head.method, head.target), ("POST", "/v1/chat/completions"));
            let parent = protocol::TraceParent::parse(head.fields.get("traceparent").unwrap());
            assert_eq!(parent.unwrap().trace_id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
            assert_eq!(head.body, BodyKind::Length(4));
            seen.push("head");
        }
        RequestEvent::Body { bytes, at } => {
            assert_eq!((bytes, at), (&b"body"[..], message.len() - 7));
            seen.push("body");
        }
        RequestEvent::End => seen.push("end"),
    });
    assert_eq!(seen, ["head", "body", "end"]);
    assert_eq!(taken, message.len() - 3);
    assert_eq!(decoder.framing(), Framing::Valid);
    assert_eq!(decoder.head_bytes(), Some(u64::try_from(taken).unwrap() - 4));
}

#[test]
fn uncopied_body_bytes_are_passed_over_by_length() {
    let mut decoder = RequestDecoder::new();
    decoder.feed(b"POST / HTTP/1.1\r\ncontent-length: 1000\r\n\r\nabc", |_| {});
    assert_eq!(decoder.body_remaining(), Some(997));
    assert_eq!(decoder.skip(900), 900);
    assert_eq!(decoder.skip(200), 97);
    assert_eq!(decoder.framing(), Framing::Valid);
    assert_eq!(decoder.bytes_unseen(), 997);
    assert_eq!(decoder.skip(103), 0);
}

#[test]
fn uncopied_bytes_of_a_head_or_a_chunked_body_leave_it_unknown() {
    let lost = Framing::Unknown { why: UnknownCause::LostBytes };
    let mut decoder = RequestDecoder::new();
    decoder.feed(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab", |_| {});
    assert_eq!(decoder.skip(50), 50);
    assert_eq!(decoder.framing(), lost);
    let mut decoder = RequestDecoder::new();
    decoder.feed(b"POST / HT", |_| {});
    decoder.skip(1);
    assert_eq!(decoder.framing(), lost);
}

#[test]
fn a_request_without_length_has_no_body() {
    let mut decoder = RequestDecoder::new();
    assert_eq!(decoder.feed(b"GET / HTTP/1.1\r\nhost: a\r\n\r\nGET", |_| {}), 27);
    assert!(decoder.keep_alive());
}

#[test]
fn a_request_cut_short_stays_incomplete() {
    let mut decoder = RequestDecoder::new();
    decoder.feed(b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nab", |_| {});
    decoder.close(Close::Eof);
    assert_eq!(decoder.framing(), Framing::Incomplete);
}
