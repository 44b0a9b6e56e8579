//! Group A: what starts the clock of the first token, and what does not.

use super::expect::{Expected, ExpectedFraming};
use super::script::{Case, DONE, LAST_CHUNK, Script, chunk, content, delta, event};
use crate::outcome::StreamOutcome;
use crate::timeline::TokensFrom;

const ROLE: &str = r#"{"role":"assistant","content":""}"#;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Script::chunked().tokens(5).finish(5).case(
            "base",
            &["base"],
            "five tokens, 20 ms apart, finish reason, usage, [DONE]",
            Expected::base(),
        ),
        role_only_early(),
        role_null_early(),
        reasoning("reasoning", "reasoning", &["A4", "A10"]),
        reasoning("reasoning_content", "reasoning_content", &["A5", "A10"]),
        reasoning_only(),
        text_field_absent(),
        empty_choices_first(),
        tool_calls(),
        completions_text(),
    ]
}

fn role_only_early() -> Case {
    Script::chunked().chunk(12, delta(ROLE)).tokens(5).finish(5).case(
        "role_only_early",
        &["A1", "A2", "A3", "D7"],
        "a role-only chunk 90 ms before the first token",
        Expected::base(),
    )
}

fn role_null_early() -> Case {
    let role = r#"{"role":"assistant","content":null,"reasoning":null,"tool_calls":null}"#;
    Script::chunked().chunk(12, delta(role)).tokens(5).finish(5).case(
        "role_null_early",
        &["A1"],
        "a gateway answers at once with a role and null content",
        Expected::base(),
    )
}

fn reasoning(name: &'static str, key: &str, ids: &'static [&'static str]) -> Case {
    let thought = delta(&format!(r#"{{"{key}":"hm "}}"#));
    let script = (0..3).fold(Script::chunked(), |script, n| script.chunk(100 + 20 * n, &thought));
    script.chunk(160, content("so ")).chunk(180, content("it is")).finish(5).case(
        name,
        ids,
        "three reasoning tokens before the first visible one",
        Expected::base().content_ttft(Some(160)),
    )
}

fn reasoning_only() -> Case {
    let thought = delta(r#"{"reasoning_content":"hm "}"#);
    let script = (0..5).fold(Script::chunked(), |script, n| script.chunk(100 + 20 * n, &thought));
    script.finish(5).case(
        "reasoning_only",
        &["A6", "A7", "A8"],
        "the token limit is reached while still reasoning: a complete response",
        Expected::base().content_ttft(None),
    )
}

fn text_field_absent() -> Case {
    let script =
        (0..5).fold(Script::chunked(), |script, n| script.chunk(100 + 20 * n, delta("{}")));
    script.finish(5).case(
        "text_field_absent",
        &["A13", "A6"],
        "chunks without any text field: no token was seen, whatever usage says",
        Expected {
            output_tokens: 5,
            tokens_from: TokensFrom::Usage,
            ..Expected::cut(StreamOutcome::NoToken, ExpectedFraming::Valid, 0)
        },
    )
}

fn empty_choices_first() -> Case {
    let first = event(r#"{"id":"chatcmpl-1","choices":[],"prompt_filter_results":[]}"#);
    Script::chunked().chunk(12, first).tokens(5).finish(5).case(
        "empty_choices_first",
        &["A1"],
        "a chunk with empty choices before the first token",
        Expected::base(),
    )
}

fn tool_calls() -> Case {
    let named = r#"{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":""}}]}"#;
    let empty = r#"{"tool_calls":[{"index":0,"function":{"arguments":""}}]}"#;
    let filled = r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}]}"#;
    let script = Script::chunked().chunk(50, delta(empty)).chunk(100, delta(named));
    let script = (1..5).fold(script, |script, n| script.chunk(100 + 20 * n, delta(filled)));
    script.finish(5).case(
        "tool_calls",
        &["D5"],
        "a tool call alone: a name or arguments are tokens, empty arguments are not",
        Expected::base().content_ttft(None),
    )
}

fn completions_text() -> Case {
    let text =
        event(r#"{"id":"cmpl-1","choices":[{"index":0,"text":"tok","finish_reason":null}]}"#);
    let end = event(
        r#"{"id":"cmpl-1","choices":[{"index":0,"text":"","finish_reason":"length"}],"usage":{"prompt_tokens":4,"completion_tokens":5}}"#,
    );
    let script = (0..5).fold(Script::chunked(), |script, n| script.chunk(100 + 20 * n, &text));
    let tail = [chunk(end.as_bytes()), chunk(DONE.as_bytes()), LAST_CHUNK.into()].concat();
    script.raw(200, tail).case(
        "completions_text",
        &["base"],
        "the legacy completions API",
        Expected::base(),
    )
}
