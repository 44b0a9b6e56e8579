//! Group D: tokens per chunk, counts and TPOT.

use super::expect::{Expected, ExpectedFraming};
use super::script::{Case, DONE, LAST_CHUNK, Script, chunk, content, event, finish, usage};
use crate::outcome::StreamOutcome;
use crate::timeline::{TokensFrom, Tpot};

pub(super) fn cases() -> Vec<Case> {
    vec![
        multi_token_chunks(),
        speculative(),
        empty_content_chunk(),
        trailing_usage(),
        usage_on_last_content(),
        continuous_usage(),
        usage_disagrees(),
        no_usage(),
        zero_usage(),
        single_token(),
        coalesced_event(),
        Script::chunked()
            .tokens(1)
            .chunk(120, content(&"a".repeat(20_000)))
            .chunk(140, content("tok "))
            .finish(5)
            .case(
                "long_event",
                &["D10"],
                "one event larger than a segment and many read buffers",
                Expected::tokens(100, 140, 5, 3),
            ),
    ]
}

fn end(at_ms: u64, script: Script, events: &[String]) -> Script {
    let framed = events.iter().map(|event| chunk(event.as_bytes())).collect::<Vec<_>>().concat();
    script.raw(at_ms, [framed, LAST_CHUNK.into()].concat())
}

fn multi_token_chunks() -> Case {
    let script = [100, 160, 220]
        .into_iter()
        .fold(Script::chunked(), |script, at| script.chunk(at, content("two or three ")));
    end(230, script, &[finish("stop"), usage(7), DONE.into()]).case(
        "multi_token_chunks",
        &["D1", "D3", "D6"],
        "seven tokens in three chunks, 60 ms apart: 20 ms per token",
        Expected::tokens(100, 220, 7, 3),
    )
}

fn speculative() -> Case {
    let script = [100, 127, 154]
        .into_iter()
        .fold(Script::chunked(), |script, at| script.chunk(at, content("accepted run ")));
    end(160, script, &[finish("length"), usage(9), DONE.into()]).case(
        "speculative_decoding",
        &["D2", "D3"],
        "nine tokens in three accepted runs",
        Expected::tokens(100, 154, 9, 3),
    )
}

fn empty_content_chunk() -> Case {
    Script::chunked().tokens(5).chunk(190, content("")).finish(5).case(
        "empty_content_chunk",
        &["D4", "D7"],
        "an empty chunk after the last token",
        Expected::base(),
    )
}

fn trailing_usage() -> Case {
    let script = Script::chunked().tokens(5).chunk(185, finish("stop"));
    end(250, script, &[usage(5), DONE.into()]).case(
        "trailing_usage",
        &["D7", "D8"],
        "the usage chunk comes 70 ms after the last token",
        Expected::base(),
    )
}

fn usage_on_last_content() -> Case {
    let last = event(
        r#"{"choices":[{"index":0,"delta":{"content":"tok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":16,"completion_tokens":5}}"#,
    );
    end(180, Script::chunked().tokens(4), &[last, DONE.into()]).case(
        "usage_on_last_content",
        &["D8"],
        "content, finish reason and usage in one chunk",
        Expected::base(),
    )
}

fn continuous_usage() -> Case {
    let script = (0..5u64).fold(Script::chunked(), |script, n| {
        let count = n + 1;
        script.chunk(
            100 + 20 * n,
            event(&format!(
                r#"{{"choices":[{{"delta":{{"content":"t"}}}}],"usage":{{"prompt_tokens":16,"completion_tokens":{count}}}}}"#
            )),
        )
    });
    end(200, script, &[finish("stop"), DONE.into()]).case(
        "continuous_usage",
        &["D1"],
        "usage in every chunk: the last one counts",
        Expected::base(),
    )
}

fn usage_disagrees() -> Case {
    let script = Script::chunked().tokens(5);
    end(200, script, &[finish("stop"), usage(9), DONE.into()]).case(
        "usage_disagrees",
        &["D9", "D10", "D16"],
        "usage counts more tokens than there are chunks: usage is right",
        Expected::tokens(100, 180, 9, 5),
    )
}

fn no_usage() -> Case {
    let script = Script::chunked().tokens(5);
    end(200, script, &[finish("stop"), DONE.into()]).case(
        "no_usage",
        &["D9"],
        "no usage: chunks are counted, and the record says so",
        Expected { tokens_from: TokensFrom::Chunks, ..Expected::base() },
    )
}

fn zero_usage() -> Case {
    let script = Script::chunked().tokens(5);
    end(200, script, &[finish("stop"), usage(0), DONE.into()]).case(
        "zero_usage",
        &["D4"],
        "usage claims no token although five came: no count",
        Expected { tokens_from: TokensFrom::Chunks, ..Expected::base() },
    )
}

fn single_token() -> Case {
    let script = Script::chunked().tokens(1);
    end(110, script, &[finish("length"), usage(1), DONE.into()]).case(
        "single_token",
        &["D13"],
        "one token: TPOT does not exist",
        Expected {
            outcome: StreamOutcome::SingleToken,
            tpot: Tpot::SingleToken,
            ..Expected::tokens(100, 100, 1, 1)
        },
    )
}

fn coalesced_event() -> Case {
    let script = Script::chunked().chunk(180, content("five tokens in one event"));
    end(200, script, &[finish("stop"), usage(5), DONE.into()]).case(
        "coalesced_event",
        &["D14"],
        "all tokens in one event: TPOT is undefined",
        Expected {
            framing: ExpectedFraming::Valid,
            tpot: Tpot::Coalesced,
            ..Expected::tokens(180, 180, 5, 1)
        },
    )
}
