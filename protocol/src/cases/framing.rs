//! Group F: HTTP framing, legal, tolerated and broken.

use super::expect::{Expected, ExpectedFraming};
use super::script::{
    CHUNKED_HEAD, CLOSE_HEAD, Case, DONE, End, LAST_CHUNK, Script, chunk, content, finish, usage,
};
use crate::http1::Rule;
use crate::outcome::{OutcomeUnknown, StreamOutcome};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = legal();
    cases.extend(tolerated());
    cases.extend(broken_heads());
    cases.extend(broken_bodies());
    cases
}

/// The events of the base case: five tokens at their instants, and the rest at 200 ms.
fn whole_body() -> (Vec<(u64, String)>, String) {
    let tokens = (0..5).map(|n| (100 + 20 * n, content("tok "))).collect();
    (tokens, [finish("stop"), usage(5), DONE.to_owned()].concat())
}

/// The base case without chunks, after a head made from the length of its body.
fn unchunked(head: impl Fn(usize) -> String) -> Script {
    let (tokens, tail) = whole_body();
    let len = tokens.iter().map(|(_, event)| event.len()).sum::<usize>() + tail.len();
    let script = Script::head(&head(len));
    tokens.into_iter().fold(script, |script, (at, event)| script.raw(at, event)).raw(200, tail)
}

fn with_length(len: usize) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len}\r\n\r\n")
}

fn legal() -> Vec<Case> {
    let interim = format!("HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n{CHUNKED_HEAD}");
    let coded = CHUNKED_HEAD.replace("\r\n\r\n", "\r\ncontent-encoding: gzip\r\n\r\n");
    let hidden = Expected {
        outcome: StreamOutcome::Unknown(OutcomeUnknown::OpaqueEncoding),
        ..Expected::cut(StreamOutcome::Ok, ExpectedFraming::Valid, 0)
    };
    vec![
        unchunked(|_| CLOSE_HEAD.to_owned())
            .case("close_delimited", &["F"], "the close ends the body", Expected::base())
            .ending(End::Close(210)),
        unchunked(|_| CLOSE_HEAD.replace("HTTP/1.1", "HTTP/1.0"))
            .case("http10", &["F"], "an HTTP/1.0 server", Expected::base())
            .ending(End::Close(210)),
        unchunked(with_length).case(
            "content_length",
            &["F"],
            "a body of declared length",
            Expected::base(),
        ),
        Script::head(&interim).tokens(5).finish(5).case(
            "interim_response",
            &["F"],
            "an interim response before the final one",
            Expected::base(),
        ),
        Script::head(&coded).chunk(100, b"\x1f\x8b\x08\0\0\0\0\0").raw(200, LAST_CHUNK).case(
            "opaque_encoding",
            &["F"],
            "a compressed body nobody asked for: framing and first byte are still judged",
            hidden,
        ),
    ]
}

/// The base case with its last step's last chunk replaced.
fn ending_in(last_chunk: &str) -> Script {
    let (_, tail) = whole_body();
    let end = [chunk(tail.as_bytes()), last_chunk.into()].concat();
    Script::chunked().tokens(5).raw(200, end)
}

fn tolerated() -> Vec<Case> {
    let padded = |suffix: &str| {
        (0..5).fold(Script::chunked(), |script, n| {
            let event = content("tok ");
            script.raw(100 + 20 * n, format!("{:x}{suffix}\r\n{event}\r\n", event.len()))
        })
    };
    let folded = CHUNKED_HEAD.replace("no-cache", "no-cache,\r\n no-store");
    vec![
        ending_in("0\r\nx-checksum: 1\r\nx-served-by: a\r\n\r\n").case(
            "trailers",
            &["F"],
            "trailer fields after the last chunk",
            Expected::base().tolerating(Rule::Trailers, 2),
        ),
        padded(";ext=1").finish(5).case(
            "chunk_extensions",
            &["F"],
            "chunk extensions",
            Expected::base().tolerating(Rule::ChunkExtension, 5),
        ),
        padded("  ").finish(5).case(
            "chunk_size_blanks",
            &["F"],
            "blanks after the chunk size",
            Expected::base().tolerating(Rule::ChunkSizeBlank, 5),
        ),
        Script::head(&CHUNKED_HEAD.replace("\r\n", "\n")).tokens(5).finish(5).case(
            "bare_lf_head",
            &["F"],
            "the lines of the head end in LF",
            Expected::base().tolerating(Rule::BareLf, 5),
        ),
        Script::head(&folded).tokens(5).finish(5).case(
            "folded_field",
            &["F"],
            "a field folded over two lines",
            Expected::base().tolerating(Rule::ObsFold, 1),
        ),
        unchunked(|len| with_length(len).replace("\r\n\r\n", &format!(", {len}\r\n\r\n"))).case(
            "content_length_repeated",
            &["F"],
            "the same Content-Length twice",
            Expected::base().tolerating(Rule::ContentLengthRepeated, 1),
        ),
    ]
}

fn broken(rule: Rule, events: u64) -> Expected {
    Expected::cut(StreamOutcome::Framing, ExpectedFraming::Invalid(rule), events)
}

fn broken_heads() -> Vec<Case> {
    let both = CHUNKED_HEAD.replace("\r\n\r\n", "\r\ncontent-length: 5\r\n\r\n");
    vec![
        Script::head(&both).tokens(5).finish(5).case(
            "content_length_and_chunked",
            &["F"],
            "Content-Length beside Transfer-Encoding",
            broken(Rule::TransferEncodingWithContentLength, 0),
        ),
        unchunked(|len| with_length(len).replace("length: ", "length: +")).case(
            "content_length_plus",
            &["F"],
            "Content-Length with a sign",
            broken(Rule::ContentLengthSign, 0),
        ),
        unchunked(|len| with_length(len).replace("\r\n\r\n", ", 7\r\n\r\n")).case(
            "content_length_conflict",
            &["F"],
            "two different Content-Lengths",
            broken(Rule::ContentLengthConflict, 0),
        ),
        Script::head("SSH-2.0-OpenSSH_9.2\r\n")
            .case("not_http", &["F"], "a server of another protocol", broken(Rule::StartLine, 0))
            .ending(End::Close(20)),
    ]
}

fn broken_bodies() -> Vec<Case> {
    let two = || Script::chunked().tokens(2);
    let gateway_response = "HTTP/1.1 502 Bad Gateway\r\ncontent-type: application/json\r\n\
         connection: close\r\n\r\n{\"error\":\"pd_decode_stream_timeout\"}";
    vec![
        two()
            .raw(140, "xyz\r\nabc\r\n")
            .case("bad_chunk_size", &["F"], "no chunk size", broken(Rule::ChunkSize, 2))
            .ending(End::Close(150)),
        two()
            .raw(140, "data: {\"error\":\"max_stream_duration_exceeded\"}\n\n")
            .case(
                "raw_event_in_chunked",
                &["F"],
                "a gateway writes an event into a chunked body without a chunk around it",
                broken(Rule::ChunkSize, 2),
            )
            .ending(End::Close(150)),
        two()
            .raw(140, gateway_response)
            .case(
                "response_in_body",
                &["F"],
                "a gateway writes a whole 502 response into a body that has begun",
                broken(Rule::ChunkSize, 2),
            )
            .ending(End::Close(150)),
        two()
            .raw(140, "5\r\nabcdefgh\r\n")
            .case(
                "chunk_too_long",
                &["F"],
                "more data than the chunk size",
                broken(Rule::ChunkDataEnd, 2),
            )
            .ending(End::Close(150)),
        two()
            .raw(140, "5\nabcde\n0\n\n")
            .case("bare_lf_chunk", &["F"], "chunk lines end in LF", broken(Rule::ChunkBareLf, 2))
            .ending(End::Close(150)),
        content_length_short(),
        unchunked(|len| with_length(len + 10))
            .case(
                "content_length_long",
                &["F"],
                "Content-Length promises ten bytes more than come",
                Expected {
                    outcome: StreamOutcome::Truncated,
                    framing: ExpectedFraming::Incomplete,
                    ..Expected::base()
                },
            )
            .ending(End::Close(210)),
    ]
}

fn content_length_short() -> Case {
    unchunked(|len| with_length(len - DONE.len()))
        .case(
            "content_length_short",
            &["F"],
            "Content-Length leaves out [DONE], which follows all the same",
            Expected {
                outcome: StreamOutcome::Framing,
                framing: ExpectedFraming::Invalid(Rule::ExcessBytes),
                ..Expected::base()
            },
        )
        .ending(End::Close(210))
}
