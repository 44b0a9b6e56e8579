//! What a timeline tells beyond the scripted cases: reports per feed, lost bytes, bounds, outcome order.

use protocol::http1::{Close, Framing, Method, Rule, UnknownCause};
use protocol::timeline::{BadPayloadKind, Limits, TpotValue};
use protocol::{Nanos, OutcomeUnknown, ResponseTimeline, StreamOutcome, Tpot};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const TOKEN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn at(ns: u64) -> Nanos {
    Nanos::new(ns)
}

fn begun() -> ResponseTimeline {
    let mut timeline = ResponseTimeline::new(Method::Post);
    timeline.feed(HEAD.as_bytes(), at(1));
    timeline
}

#[test]
fn a_feed_tells_whether_something_followed_its_first_token() {
    let mut timeline = begun();
    let report = timeline.feed(TOKEN.as_bytes(), at(2));
    assert!(report.first_token && !report.followed && report.token_events == 1);
    let report = timeline.feed(format!("{TOKEN}{TOKEN}").as_bytes(), at(3));
    assert!(!report.first_token && report.followed && report.token_events == 2);
    let report = timeline.feed(b"data: ", at(4));
    assert!(!report.followed && report.token_events == 0);
}

#[test]
fn the_line_ends_of_event_and_chunk_do_not_follow_it() {
    let mut timeline = ResponseTimeline::new(Method::Post);
    timeline.feed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", at(1));
    let event = TOKEN.replace('\n', "\r\n");
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    assert!(!timeline.feed(chunk.as_bytes(), at(2)).followed);
    assert!(timeline.feed(format!("{chunk}0\r\n\r\n").as_bytes(), at(3)).followed);
}

#[test]
fn sequential_responses_on_one_connection_have_their_own_timelines() {
    let body = format!("{TOKEN}{DONE}");
    let one = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let two = format!("{one}{one}");
    let mut first = ResponseTimeline::new(Method::Post);
    let report = first.feed(two.as_bytes(), at(1));
    assert!(report.complete && first.keep_alive());
    assert_eq!(report.consumed, one.len());
    let mut second = ResponseTimeline::new(Method::Post);
    assert_eq!(second.feed(&two.as_bytes()[report.consumed..], at(1)).consumed, one.len());
    assert_eq!(first.record(), second.record());
    assert_eq!(StreamOutcome::of(first.record()), StreamOutcome::SingleToken);
}

#[test]
fn lost_bytes_leave_the_outcome_unknown() {
    let mut timeline = begun();
    timeline.feed(TOKEN.as_bytes(), at(2));
    timeline.gap(10, at(3));
    timeline.feed(format!("{TOKEN}{DONE}").as_bytes(), at(4));
    timeline.close(Close::Eof, at(5));
    let record = timeline.record();
    assert_eq!(record.token_events, 1, "events after a gap are not read");
    assert_eq!(record.bytes_lost, 10);
    assert_eq!(record.framing, Framing::Unknown { why: UnknownCause::LostBytes });
    let unknown = StreamOutcome::Unknown(OutcomeUnknown::LostBytes);
    assert_eq!(StreamOutcome::of(record), unknown);
}

#[test]
fn an_error_seen_before_a_loss_stays_an_error() {
    let mut timeline = begun();
    timeline.feed(b"data: {\"error\":{\"message\":\"x\"}}\n\n", at(2));
    timeline.gap(10, at(3));
    assert_eq!(StreamOutcome::of(timeline.record()), StreamOutcome::InbandError);
}

#[test]
fn outcomes_are_taken_in_their_order() {
    let error = "data: {\"error\":\"x\"}\n\n";
    let outcome = |body: &str, close| {
        let mut timeline = ResponseTimeline::new(Method::Post);
        timeline.feed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", at(1));
        timeline.feed(format!("{:x}\r\n{body}\r\n", body.len()).as_bytes(), at(2));
        if close == Close::Eof {
            timeline.feed(b"zz", at(3));
        }
        timeline.close(close, at(4));
        StreamOutcome::of(timeline.record())
    };
    let bad = "data: x\n\n";
    assert_eq!(outcome(&format!("{bad}{error}"), Close::Eof), StreamOutcome::InbandError);
    assert_eq!(outcome(bad, Close::Eof), StreamOutcome::Framing);
    assert_eq!(outcome(bad, Close::Reset), StreamOutcome::BadPayload);
    assert_eq!(outcome(TOKEN, Close::Reset), StreamOutcome::Reset);
}

#[test]
fn a_stream_under_way_is_open() {
    let mut timeline = begun();
    assert_eq!(StreamOutcome::of(timeline.record()), StreamOutcome::Open);
    timeline.feed(format!("{TOKEN}{DONE}").as_bytes(), at(2));
    assert_eq!(StreamOutcome::of(timeline.record()), StreamOutcome::Open);
}

#[test]
fn token_stamps_are_bounded_and_say_so() {
    let limits = Limits { token_stamps: 2, ..Limits::default() };
    let mut timeline = ResponseTimeline::with_limits(Method::Post, limits);
    timeline.feed(HEAD.as_bytes(), at(1));
    (2..5).for_each(|ns| {
        timeline.feed(TOKEN.as_bytes(), at(ns));
    });
    let record = timeline.record();
    assert_eq!(record.token_stamps, [at(2), at(3)]);
    assert!(record.token_stamps_overflow);
    assert_eq!((record.token_events, record.last_token), (3, Some(at(4))));
}

#[test]
fn an_event_over_the_bound_is_a_bad_payload() {
    let limits = Limits { event_bytes: 100, ..Limits::default() };
    let mut timeline = ResponseTimeline::with_limits(Method::Post, limits);
    timeline.feed(HEAD.as_bytes(), at(1));
    timeline.feed(format!("data: {}\n\n", "a".repeat(200)).as_bytes(), at(2));
    let bad = timeline.record().bad_payload.unwrap();
    assert_eq!((bad.kind, bad.stamp), (BadPayloadKind::TooLarge, at(2)));
}

#[test]
fn usage_id_and_finish_are_kept() {
    let mut timeline = begun();
    let chunk = r#"{"id":"chatcmpl-___prefill_addr_10.0.0.1:80___","choices":[{"finish_reason":"length"}],
        "usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}}"#;
    timeline.feed(format!("data: {}\n\n", chunk.replace('\n', "")).as_bytes(), at(2));
    timeline.feed(b"data: {\"id\":\"other\",\"usage\":null}\n\n", at(3));
    let record = timeline.record();
    let usage = record.usage.unwrap();
    assert_eq!(usage.prompt_tokens, Some(7));
    assert_eq!(usage.completion_tokens, Some(3));
    assert_eq!(usage.cached_tokens, Some(4));
    assert_eq!(record.response_id.as_deref(), Some("chatcmpl-___prefill_addr_10.0.0.1:80___"));
    let finish = record.finish.as_ref().unwrap();
    assert_eq!((finish.reason.as_str(), finish.stamp), ("length", at(2)));
}

#[test]
fn repeated_keys_and_malformed_utf8_do_not_void_a_chunk() {
    let mut timeline = begun();
    timeline.feed(b"data: {\"id\":\"a\",\"id\":\"b\",\"choices\":[{\"text\":\"x\"}]}\n\n", at(2));
    timeline.feed(b"data: {\"choices\":[{\"text\":\"\xff\"}]}\n\n", at(3));
    assert_eq!(timeline.record().token_events, 2);
    assert_eq!(timeline.record().bad_payload, None);
}

#[test]
fn unexpected_types_in_free_fields_do_not_void_a_chunk() {
    let mut timeline = begun();
    let chunk = r#"{"id":5,"choices":[{"delta":{"content":[{"text":"x"}],"reasoning":7}}],"usage":{"completion_tokens":-1}}"#;
    timeline.feed(format!("data: {chunk}\n\n").as_bytes(), at(2));
    assert_eq!(timeline.record().token_events, 1);
    assert_eq!(timeline.record().bad_payload, None);
}

#[test]
fn excess_is_only_booked_after_the_end() {
    let mut timeline = ResponseTimeline::new(Method::Post);
    timeline.feed(b"HTTP/1.1 503 X\r\ncontent-length: 4\r\n\r\nab", at(1));
    timeline.excess(3);
    assert_eq!(timeline.record().framing, Framing::Incomplete);
    timeline.feed(b"cd", at(2));
    timeline.excess(3);
    let invalid = Framing::Invalid { rule: Rule::ExcessBytes, offset: 41 };
    assert_eq!((timeline.record().framing, timeline.record().excess_bytes), (invalid, 3));
}

#[test]
fn tpot_compares_exactly_and_is_never_zero() {
    let value = TpotValue { span_ns: 100, intervals: 3 };
    assert!(!value.within(33) && value.within(34));
    assert_eq!(value.floor_ns(), 33);
    assert_eq!(TpotValue { span_ns: 1, intervals: 9 }.floor_ns(), 1);
    assert!(!TpotValue { span_ns: u64::MAX, intervals: 1 }.within(u64::MAX - 1));
    assert_eq!(Tpot::new(0, 5), Tpot::Coalesced);
    assert_eq!(Tpot::new(50, 1), Tpot::SingleToken);
    assert_eq!(Tpot::new(50, 0), Tpot::NoToken);
}
