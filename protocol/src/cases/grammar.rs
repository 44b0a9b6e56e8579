//! Group B: the event-stream grammar.

use super::expect::Expected;
use super::script::{CHUNKED_HEAD, Case, DONE, LAST_CHUNK, Script, chunk, content, finish, usage};

/// The events of the base case with their instants.
fn base_events() -> Vec<(u64, String)> {
    let tokens = (0..5).map(|n| (100 + 20 * n, content("tok ")));
    tokens.chain([(200, finish("stop")), (202, usage(5)), (204, DONE.to_owned())]).collect()
}

/// The base case with every event passed through `edit`.
fn edited(edit: impl Fn(String) -> String) -> Script {
    let script = base_events()
        .into_iter()
        .fold(Script::chunked(), |script, (at, event)| script.chunk(at, edit(event)));
    script.raw(204, LAST_CHUNK)
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = line_ends();
    cases.extend(fields());
    cases.extend(comments());
    cases.extend(splits());
    cases
}

fn line_ends() -> Vec<Case> {
    vec![
        edited(|event| event.replace('\n', "\r\n")).case(
            "crlf",
            &["B3"],
            "lines end in CRLF",
            Expected::base(),
        ),
        edited(|event| event.replace('\n', "\r")).case(
            "cr",
            &["B3"],
            "lines end in CR",
            Expected::base(),
        ),
        delimiter_split(),
    ]
}

fn delimiter_split() -> Case {
    let script = base_events().into_iter().fold(Script::chunked(), |script, (at, event)| {
        let (head, tail) = event.split_at(event.len() - 1);
        script.chunk(at - 1, head).chunk(at, tail)
    });
    script.raw(204, LAST_CHUNK).case(
        "delimiter_split",
        &["B11"],
        "the second LF of each blank line comes 1 ms after the first: the event ends with it",
        Expected::base(),
    )
}

fn fields() -> Vec<Case> {
    vec![
        edited(|event| event.replace("data: ", "data:")).case(
            "no_space",
            &["B1", "B2"],
            "no space after the colon",
            Expected::base(),
        ),
        edited(|event| format!("event: message\n{event}")).case(
            "event_lines",
            &["B15"],
            "every event is named",
            Expected::base(),
        ),
        edited(|event| format!("id: 7\nretry: 3000\nx-unknown\n{event}")).case(
            "id_retry_fields",
            &["B15"],
            "id, retry and unknown fields",
            Expected::base(),
        ),
        edited(|event| event.replace(r#","choices""#, ",\ndata: \"choices\"")).case(
            "multi_line_data",
            &["B15"],
            "the data of one event spread over two lines",
            Expected::base(),
        ),
        byte_order_mark(),
    ]
}

fn byte_order_mark() -> Case {
    Script::chunked().chunk(12, "\u{feff}").tokens(5).finish(5).case(
        "bom",
        &["B15"],
        "the stream begins with a byte order mark",
        Expected::base(),
    )
}

fn comments() -> Vec<Case> {
    let ping = |script: Script, at: u64| script.chunk(at, ": keep-alive\n\n");
    let script = [30, 50, 70].into_iter().fold(Script::chunked(), ping);
    let empty = Script::chunked().chunk(30, ":\n\n");
    vec![
        script.tokens(5).finish(5).case(
            "comments_before_first_token",
            &["B4", "B6"],
            "keep-alive comments during a long prefill",
            Expected { comments: 3, ..Expected::base() },
        ),
        empty.tokens(5).finish(5).case(
            "empty_comment",
            &["B4"],
            "a comment without text",
            Expected { comments: 1, ..Expected::base() },
        ),
    ]
}

fn splits() -> Vec<Case> {
    vec![utf8_split(), event_split(), head_and_events_split(), events_in_one_write()]
}

/// Splits the third token's event into two chunks at a byte offset found by `place`.
fn third_token_split(text: &str, place: impl Fn(&[u8]) -> usize) -> Script {
    let event = content(text).into_bytes();
    let (head, tail) = event.split_at(place(&event));
    let script = Script::chunked().tokens(2).chunk(130, head).chunk(140, tail);
    script.chunk(160, content("tok ")).chunk(180, content("tok ")).finish(5)
}

fn utf8_split() -> Case {
    let inside = |event: &[u8]| event.iter().position(|byte| *byte >= 0x80).unwrap_or(0) + 1;
    third_token_split("\u{20ac}", inside).case(
        "utf8_split",
        &["B7", "B8"],
        "a multi-byte character split over two writes",
        Expected::base(),
    )
}

fn event_split() -> Case {
    third_token_split("tok ", |event| event.len() / 2).case(
        "event_split",
        &["B3", "B12"],
        "one event split over two writes",
        Expected::base(),
    )
}

fn head_and_events_split() -> Case {
    let body = chunk(content("tok ").as_bytes());
    let first = [CHUNKED_HEAD.as_bytes(), &body[..20]].concat();
    let script = Script::silent().raw(60, &first[..30]).raw(70, &first[30..]).raw(100, &body[20..]);
    let script = (1..5).fold(script, |script, n| script.chunk(100 + 20 * n, content("tok ")));
    script.finish(5).case(
        "head_split",
        &["B12"],
        "the head arrives in two parts, the second with the beginning of the first event",
        Expected::base(),
    )
}

fn events_in_one_write() -> Case {
    let five = chunk(content("tok ").as_bytes()).repeat(5);
    Script::chunked().raw(180, five).finish(5).case(
        "coalesced_write",
        &["B3", "D14"],
        "five events in one write at 180 ms: the intervals cannot be observed",
        Expected::tokens(180, 180, 5, 5),
    )
}
