//! Group C: how streams end, and errors.

use super::expect::{Expected, ExpectedFraming};
use super::script::{
    CLOSE_HEAD, Case, DONE, End, LAST_CHUNK, Script, chunk, content, event, finish, usage,
};
use crate::http1::Rule;
use crate::outcome::StreamOutcome;
use crate::timeline::TokensFrom;

const ERROR: &str =
    r#"{"error":{"message":"engine died","type":"InternalServerError","code":500}}"#;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = inband_errors();
    cases.extend(truncated());
    cases.extend(complete());
    cases.extend(statuses());
    cases
}

fn failed(outcome: StreamOutcome) -> Expected {
    Expected::cut(outcome, ExpectedFraming::Valid, 2)
}

/// Two tokens, then `tail` in one chunk and the end of the message at 140 ms.
fn two_tokens_then(tail: &str) -> Script {
    let end = [chunk(tail.as_bytes()), LAST_CHUNK.into()].concat();
    Script::chunked().tokens(2).raw(140, end)
}

fn inband_errors() -> Vec<Case> {
    vec![
        two_tokens_then(&format!("{}{DONE}", event(ERROR))).case(
            "inband_error",
            &["C1"],
            "two tokens, then an error object, [DONE] and a clean end",
            failed(StreamOutcome::InbandError),
        ),
        two_tokens_then(&event(r#"{"error":"overloaded"}"#)).case(
            "inband_error_text",
            &["C1"],
            "the error is a mere string",
            failed(StreamOutcome::InbandError),
        ),
        two_tokens_then(&format!("event: error\n{}{DONE}", event(r#"{"message":"gone"}"#))).case(
            "inband_error_event",
            &["C8"],
            "an event named error",
            failed(StreamOutcome::InbandError),
        ),
        two_tokens_then(&format!("{}{DONE}", finish("abort"))).case(
            "finish_abort",
            &["C1"],
            "finish reason abort",
            failed(StreamOutcome::InbandError),
        ),
        two_tokens_then(&format!("{}{DONE}", finish("error"))).case(
            "finish_error",
            &["C1"],
            "finish reason error",
            failed(StreamOutcome::InbandError),
        ),
        two_tokens_then("data: not json\n\n").case(
            "non_json",
            &["C8"],
            "two tokens, then data that is no JSON",
            failed(StreamOutcome::BadPayload),
        ),
    ]
}

fn truncated() -> Vec<Case> {
    let open = |outcome| Expected::cut(outcome, ExpectedFraming::Incomplete, 2);
    let close_delimited = Script::head(CLOSE_HEAD).raw(100, content("a")).raw(120, content("b"));
    let done = format!("{}{}", finish("stop"), DONE);
    vec![
        close_delimited.case(
            "truncated_clean_eof",
            &["C2", "C2b"],
            "two tokens, then an orderly close that ends a close-delimited body: nothing says it is whole",
            failed(StreamOutcome::Truncated),
        )
        .ending(End::Close(140)),
        two_tokens_then(": upstream gone\n\n").case(
            "truncated_in_clean_framing",
            &["C2", "C3"],
            "two tokens and a clean last chunk, without finish reason and [DONE]",
            Expected { comments: 1, ..failed(StreamOutcome::Truncated) },
        ),
        Script::chunked().tokens(2).case(
            "missing_last_chunk",
            &["C3"],
            "two tokens, then an orderly close inside the chunked body",
            open(StreamOutcome::Truncated),
        )
        .ending(End::Close(140)),
        Script::chunked().tokens(2).chunk(140, done).case(
            "done_without_framing_end",
            &["C3", "C14"],
            "finish reason and [DONE], then a close before the last chunk",
            open(StreamOutcome::Truncated),
        )
        .ending(End::Close(160)),
        Script::chunked().tokens(2).case(
            "reset_mid_stream",
            &["C3", "C12"],
            "two tokens, then a reset",
            open(StreamOutcome::Reset),
        )
        .ending(End::Reset(140)),
        Script::silent().case(
            "reset_before_response",
            &["C12"],
            "a reset before any byte",
            Expected::cut(StreamOutcome::Reset, ExpectedFraming::Incomplete, 0),
        )
        .ending(End::Reset(50)),
        Script::silent().case(
            "closed_before_response",
            &["C12"],
            "an orderly close before any byte",
            Expected::cut(StreamOutcome::Truncated, ExpectedFraming::Incomplete, 0),
        )
        .ending(End::Close(50)),
    ]
}

fn complete() -> Vec<Case> {
    let no_done = format!("{}{}", finish("stop"), usage(5));
    let no_finish = format!("{}{}", usage(5), DONE);
    let end = |tail: &str| [chunk(tail.as_bytes()), LAST_CHUNK.into()].concat();
    let empty = Script::chunked().raw(100, end(&format!("{}{}", finish("stop"), DONE)));
    vec![
        Script::chunked().tokens(5).raw(200, end(&no_done)).case(
            "no_done",
            &["C2"],
            "a finish reason but no [DONE]",
            Expected::base(),
        ),
        Script::chunked().tokens(5).raw(200, end(&no_finish)).case(
            "no_finish_reason",
            &["C6"],
            "[DONE] but no finish reason",
            Expected::base(),
        ),
        empty.case(
            "zero_tokens",
            &["C7"],
            "status 200, finish reason and [DONE], and no token",
            Expected::cut(StreamOutcome::NoToken, ExpectedFraming::Valid, 0),
        ),
        Script::chunked()
            .tokens(5)
            .finish(5)
            .case(
                "reset_after_end",
                &["C12"],
                "a reset after the message's own end",
                Expected::base(),
            )
            .ending(End::Reset(220)),
        Script::chunked()
            .tokens(5)
            .chunk(190, format!("{}{}{}", finish("stop"), usage(5), DONE))
            .raw(200, LAST_CHUNK)
            .case(
                "end_after_done",
                &["C14"],
                "the last chunk comes after [DONE], and the connection stays open",
                Expected::base(),
            ),
    ]
}

fn statuses() -> Vec<Case> {
    let rejected =
        |status| Expected::cut(StreamOutcome::HttpStatus(status), ExpectedFraming::Valid, 0);
    vec![
        status(
            "503 Service Unavailable",
            "retry-after: 7\r\n",
            r#"{"error":{"message":"no_healthy_backend","code":503}}"#,
        )
        .case(
            "status_503_retry_after",
            &["C9"],
            "503 with Retry-After",
            Expected { retry_after: Some("7"), ..rejected(503) },
        ),
        status("429 Too Many Requests", "retry-after: 1\r\n", r#"{"error":"pd_overloaded"}"#).case(
            "status_429",
            &["C10"],
            "the gateway sheds load",
            Expected { retry_after: Some("1"), ..rejected(429) },
        ),
        status("504 Gateway Timeout", "", r#"{"error":"pd_prefill_timeout"}"#).case(
            "status_504_prefill_timeout",
            &["C9"],
            "the gateway gave up on prefill",
            Expected { server_timeout: true, ..rejected(504) },
        ),
        status(
            "500 Internal Server Error",
            "",
            r#"{"error":{"message":"Request processing timed out"}}"#,
        )
        .case(
            "status_500_processing_timeout",
            &["C10"],
            "another status whose body names a processing timeout",
            Expected { server_timeout: true, ..rejected(500) },
        ),
        status(
            "500 Internal Server Error",
            "",
            &format!(r#"{{"error":{{"message":"{}: prefill timed out"}}}}"#, "x".repeat(600)),
        )
        .case(
            "status_500_timeout_after_long_text",
            &["C10"],
            "the words come after more text than is kept of a message",
            Expected { server_timeout: true, ..rejected(500) },
        ),
        status(
            "500 Internal Server Error",
            "",
            r#"{"error":{"code":"prefill_timeout","message":"gave up"}}"#,
        )
        .case(
            "status_500_timeout_by_code",
            &["C10"],
            "only the code names the timeout",
            Expected { server_timeout: true, ..rejected(500) },
        ),
        Script::head("HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\n\r\n")
            .raw(20, r#"{"error":"backend_unreachable"}"#)
            .case(
                "status_502_close_delimited",
                &["C10"],
                "an error body without a length, ended by the close: valid framing",
                rejected(502),
            )
            .ending(End::Close(25)),
        status("200 OK", "", "").case(
            "status_200_empty",
            &["C7"],
            "status 200 with an empty body: nothing says that it is whole",
            Expected::cut(StreamOutcome::Truncated, ExpectedFraming::Valid, 0),
        ),
        unstreamed(),
    ]
}

fn status(line: &str, fields: &str, body: &str) -> Script {
    Script::head(&format!(
        "HTTP/1.1 {line}\r\ncontent-type: application/json\r\n{fields}content-length: {}\r\n\r\n{body}",
        body.len()
    ))
}

fn unstreamed() -> Case {
    let body = r#"{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"all at once"},"finish_reason":"stop"}],"usage":{"prompt_tokens":4,"completion_tokens":5}}"#;
    let head = format!(
        "HTTP/1.1 200\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let expect = Expected { tokens_from: TokensFrom::Usage, ..Expected::tokens(180, 180, 5, 1) };
    Script::head(&head).raw(100, &body[..40]).raw(180, &body[40..]).case(
        "unstreamed_json",
        &["D14"],
        "a server that ignores stream: true; its status line lacks the space before the reason phrase",
        expect.tolerating(Rule::MissingReasonSpace, 1),
    )
}
