//! Every row of the table of departures, in every direction it applies to.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper of a test fails by panicking")]

use protocol::http1::{
    Direction, Framing, MAX_CHUNK_LINE, MAX_SECTION, Method, RULES, RequestDecoder,
    ResponseDecoder, Rule, Tolerated, Treatment,
};

const OK: &str = "HTTP/1.1 200 OK\r\n";
const POST: &str = "POST /v1/x HTTP/1.1\r\n";
const CHUNKED: &str = "transfer-encoding: chunked\r\n\r\n";

/// A message that departs from the grammar, and the offset of the offending byte where it is fatal.
struct Example {
    rule: Rule,
    message: String,
    offset: u64,
}

fn in_head(start: &str, rule: Rule, fields: &str, offset: usize) -> Example {
    let message = format!("{start}{fields}content-length: 0\r\n\r\n");
    example(rule, message, start.len() + offset)
}

fn in_length(start: &str, rule: Rule, fields: &str) -> Example {
    example(rule, format!("{start}{fields}\r\n\r\nabcde"), 0)
}

fn in_body(start: &str, rule: Rule, body: &str, offset: usize) -> Example {
    let head = format!("{start}{CHUNKED}");
    let at = head.len() + offset;
    example(rule, format!("{head}{body}"), at)
}

fn example(rule: Rule, message: String, offset: usize) -> Example {
    Example { rule, message, offset: u64::try_from(offset).unwrap() }
}

/// Examples that read the same in both directions, after the start line.
fn shared(start: &str) -> Vec<Example> {
    let long = "a".repeat(MAX_SECTION);
    let long_extension = "x".repeat(usize::try_from(MAX_CHUNK_LINE).unwrap());
    let last_line = usize::try_from(MAX_CHUNK_LINE).unwrap();
    vec![
        in_head(start, Rule::BareLf, "a: b\n", 4),
        in_head(start, Rule::BareCr, "a: b\rc\r\n", 4),
        in_head(start, Rule::LeadingWhitespace, " a: b\r\n", 0),
        in_head(start, Rule::ObsFold, "a: b\r\n c\r\n", 6),
        in_head(start, Rule::FieldLine, "ok: 1\r\na : b\r\n", 7),
        in_head(start, Rule::FieldLine, "no colon\r\n", 0),
        in_head(start, Rule::FieldValue, "ok: 1\r\na: \u{1}\r\n", 7),
        in_head(start, Rule::HeadTooLarge, &format!("a: {long}\r\n"), MAX_SECTION - start.len()),
        in_length(start, Rule::ContentLengthSign, "content-length: +5"),
        in_length(start, Rule::ContentLengthSign, "content-length: -5"),
        in_length(start, Rule::ContentLengthSyntax, "content-length: 5x"),
        in_length(start, Rule::ContentLengthSyntax, "content-length: 0x5"),
        in_length(start, Rule::ContentLengthSyntax, "content-length:"),
        in_length(start, Rule::ContentLengthSyntax, "content-length: 5, "),
        in_length(start, Rule::ContentLengthOverflow, "content-length: 18446744073709551616"),
        in_length(start, Rule::ContentLengthRepeated, "content-length: 5\r\ncontent-length: 5"),
        in_length(start, Rule::ContentLengthRepeated, "content-length: 5,5"),
        in_length(start, Rule::ContentLengthConflict, "content-length: 5\r\ncontent-length: 6"),
        in_length(
            start,
            Rule::TransferEncodingWithContentLength,
            "content-length: 5\r\ntransfer-encoding: chunked",
        ),
        in_length(
            &start.replace("HTTP/1.1", "HTTP/1.0"),
            Rule::TransferEncodingInHttp10,
            "transfer-encoding: chunked",
        ),
        in_length(start, Rule::TransferEncodingSyntax, "transfer-encoding:"),
        in_length(start, Rule::TransferEncodingSyntax, "transfer-encoding: chunked;q=1"),
        in_length(start, Rule::ChunkedNotFinal, "transfer-encoding: chunked, gzip"),
        in_length(
            start,
            Rule::ChunkedTwice,
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        ),
        in_body(start, Rule::ChunkSize, "data: x", 2),
        in_body(start, Rule::ChunkSize, "\r\n", 0),
        in_body(start, Rule::ChunkSize, "-5\r\n", 0),
        in_body(start, Rule::ChunkSize, " 5\r\n", 0),
        in_body(start, Rule::ChunkSize, "0x5\r\n", 1),
        in_body(start, Rule::ChunkSize, "5 5\r\n", 2),
        in_body(start, Rule::ChunkSizeOverflow, "10000000000000000\r\n", 16),
        in_body(start, Rule::ChunkSizeBlank, "5 \t\r\nabcde\r\n0\r\n\r\n", 0),
        in_body(start, Rule::ChunkExtension, "5;a=\"b\"\r\nabcde\r\n0\r\n\r\n", 0),
        in_body(start, Rule::ChunkExtensionSyntax, "5;\u{1}\r\n", 2),
        in_body(start, Rule::ChunkLineTooLong, &format!("5;{long_extension}"), last_line),
        in_body(start, Rule::ChunkLineEnd, "5\rx", 2),
        in_body(start, Rule::ChunkBareLf, "5\nabcde", 1),
        in_body(start, Rule::ChunkBareLf, "5\r\nabcde\n", 8),
        in_body(start, Rule::ChunkDataEnd, "5\r\nabcdef", 8),
        in_body(start, Rule::Trailers, "5\r\nabcde\r\n0\r\na: b\r\n\r\n", 0),
    ]
}

fn responses() -> Vec<Example> {
    let mut examples = shared(OK);
    examples.extend([
        example(Rule::LeadingCrlf, format!("\r\n{OK}content-length: 0\r\n\r\n"), 0),
        example(Rule::StartLine, "HTTQ/1.1 200 OK\r\n\r\n".into(), 3),
        example(Rule::StartLine, "http/1.1 200 OK\r\n\r\n".into(), 0),
        example(Rule::StartLine, "HTTP/2.0 200 OK\r\n\r\n".into(), 5),
        example(Rule::StartLine, "HTTP/1.1  200 OK\r\n\r\n".into(), 0),
        example(Rule::StartLine, "HTTP/1.1 20 OK\r\n\r\n".into(), 0),
        example(Rule::MissingReasonSpace, "HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n".into(), 0),
        example(Rule::StatusCode, "HTTP/1.1 600 X\r\ncontent-length: 0\r\n\r\n".into(), 0),
        example(Rule::StatusCode, "HTTP/1.1 099 X\r\ncontent-length: 0\r\n\r\n".into(), 0),
        example(
            Rule::ContentLengthWithoutBody,
            "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n".into(),
            0,
        ),
        example(
            Rule::TransferEncodingWithoutBody,
            format!("HTTP/1.1 103 Early Hints\r\n{CHUNKED}{OK}content-length: 0\r\n\r\n"),
            0,
        ),
        example(Rule::ExcessBytes, format!("{OK}content-length: 2\r\n\r\nabcd"), 40),
    ]);
    examples
}

fn requests() -> Vec<Example> {
    let mut examples = shared(POST);
    examples.extend([
        example(Rule::LeadingCrlf, format!("\r\n\r\n{POST}content-length: 0\r\n\r\n"), 0),
        example(Rule::StartLine, "POST  /v1 HTTP/1.1\r\n\r\n".into(), 0),
        example(Rule::StartLine, "POST /v1\r\n\r\n".into(), 0),
        example(Rule::StartLine, "POST /v1 HTTP/2.0\r\n\r\n".into(), 0),
        in_length(POST, Rule::RequestNotChunked, "transfer-encoding: gzip"),
    ]);
    examples
}

fn judge_response(message: &[u8]) -> (Framing, Tolerated) {
    let mut decoder = ResponseDecoder::new(Method::Post);
    let taken = decoder.feed(message, |_| {});
    decoder.excess(u64::try_from(message.len() - taken).unwrap());
    (decoder.framing(), decoder.tolerated().clone())
}

fn judge_request(message: &[u8]) -> (Framing, Tolerated) {
    let mut decoder = RequestDecoder::new();
    decoder.feed(message, |_| {});
    (decoder.framing(), decoder.tolerated().clone())
}

fn check(
    examples: &[Example],
    direction: Direction,
    judge: impl Fn(&[u8]) -> (Framing, Tolerated),
) {
    for Example { rule, message, offset } in examples {
        let (framing, tolerated) = judge(message.as_bytes());
        let shown = &message[..message.len().min(120)];
        match rule.treatment(direction) {
            Treatment::Invalid => {
                let expected = Framing::Invalid { rule: *rule, offset: *offset };
                assert_eq!(framing, expected, "{direction:?} {shown:?}");
            }
            Treatment::Tolerated => {
                assert_eq!(framing, Framing::Valid, "{direction:?} {shown:?}");
                assert!(tolerated.get(*rule) > 0, "{rule:?} is not counted: {shown:?}");
            }
            Treatment::NotApplicable => panic!("{rule:?} has an example for {direction:?}"),
        }
    }
}

#[test]
fn every_response_row_is_judged_as_the_table_says() {
    check(&responses(), Direction::Response, judge_response);
}

#[test]
fn every_request_row_is_judged_as_the_table_says() {
    // Excess is judged where responses are matched with requests.
    check(&requests(), Direction::Request, judge_request);
}

#[test]
fn no_row_is_without_an_example() {
    let has = |examples: &[Example], rule| examples.iter().any(|example| example.rule == rule);
    let (requests, responses) = (requests(), responses());
    for row in RULES {
        let in_requests = row.request == Treatment::NotApplicable || has(&requests, row.rule);
        let in_responses = row.response == Treatment::NotApplicable || has(&responses, row.rule);
        assert!(in_requests, "{} lacks a request", row.code);
        assert!(in_responses, "{} lacks a response", row.code);
    }
}

#[test]
fn rows_stand_at_their_rules_place_and_codes_are_what_serde_writes() {
    for row in RULES {
        assert_eq!(row.rule.row(), row);
        assert_eq!(serde_json::to_value(row.rule).unwrap(), row.code);
        assert!(row.section.starts_with("RFC "), "{}", row.code);
    }
}
