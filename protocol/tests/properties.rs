//! What must hold for any bytes and any split of them.

mod common;

use common::{feed_bytewise, feed_pieces, remap};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use protocol::cases::cases;
use protocol::http1::{Framing, Method, RequestDecoder, ResponseDecoder, ResponseEvent};
use protocol::openai::Payload;
use protocol::sse::SseParser;
use protocol::{Nanos, ResponseTimeline, TimelineRecord};

/// One generated message and what its decoding must give.
#[derive(Clone, Debug)]
struct Message {
    bytes: Vec<u8>,
    body: Vec<u8>,
}

fn chunked_message() -> impl Strategy<Value = Message> {
    let extension = prop_oneof![Just(""), Just(";a"), Just(" ; a=\"b\"")];
    let chunk = (vec(any::<u8>(), 1..300), extension, any::<bool>());
    let trailers = prop_oneof![Just(""), Just("x-a: 1\r\n"), Just("x-a: 1\r\nx-b:\r\n")];
    (vec(chunk, 0..6), trailers).prop_map(|(chunks, trailers)| {
        let mut bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        let mut body = Vec::new();
        for (data, extension, upper) in chunks {
            let size = data.len();
            let size = if upper { format!("0{size:X}") } else { format!("{size:x}") };
            bytes.extend_from_slice(format!("{size}{extension}\r\n").as_bytes());
            bytes.extend_from_slice(&data);
            bytes.extend_from_slice(b"\r\n");
            body.extend_from_slice(&data);
        }
        bytes.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
        Message { bytes, body }
    })
}

fn sized_message() -> impl Strategy<Value = Message> {
    vec(any::<u8>(), 0..500).prop_map(|body| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        Message { bytes: [head.as_bytes(), &body].concat(), body }
    })
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![chunked_message(), sized_message()]
}

fn decode(bytes: &[u8]) -> (Framing, usize, Vec<u8>) {
    let mut decoder = ResponseDecoder::new(Method::Post);
    let mut body = Vec::new();
    let taken = decoder.feed(bytes, |event| {
        if let ResponseEvent::Body { bytes, .. } = event {
            body.extend_from_slice(bytes);
        }
    });
    (decoder.framing(), taken, body)
}

/// A scripted response, perhaps with some bytes changed.
fn damaged_case() -> impl Strategy<Value = Vec<u8>> {
    let edits = vec((any::<Index>(), any::<u8>()), 0..4);
    (any::<Index>(), edits).prop_map(|(case, edits)| {
        let cases = cases();
        let mut bytes = case.get(&cases).bytes();
        for (place, byte) in edits {
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
        }
        bytes
    })
}

fn cuts(bytes: &[u8], places: &[Index]) -> Vec<usize> {
    let mut ends = places.iter().map(|place| place.index(bytes.len() + 1)).collect::<Vec<_>>();
    ends.push(bytes.len());
    ends.sort_unstable();
    ends.dedup();
    ends.retain(|end| *end > 0);
    ends
}

fn is_consistent(record: &TimelineRecord) -> bool {
    let ordered =
        record.first_token <= record.last_token && record.first_event <= record.last_event;
    let counted = record.token_events <= record.events && record.body_bytes <= record.bytes;
    let defined = record.tpot().value().is_none_or(|v| v.span_ns > 0 && v.intervals > 0);
    ordered && counted && defined
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_split_gives_the_same_record(
        bytes in damaged_case(),
        places in vec(any::<Index>(), 0..8),
    ) {
        let ends = cuts(&bytes, &places);
        let whole = remap(feed_bytewise(&bytes), &ends);
        prop_assert_eq!(feed_pieces(&bytes, &ends), whole);
    }

    #[test]
    fn arbitrary_bytes_after_any_head_never_panic(
        bytes in vec(any::<u8>(), 0..600),
        head in prop_oneof![
            Just(""),
            Just("HTTP/1.1 200 OK\r\n\r\n"),
            Just("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
            Just("HTTP/1.1 500 X\r\ncontent-length: 90\r\n\r\n"),
            Just("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n"),
        ],
    ) {
        let bytes = [head.as_bytes(), &bytes].concat();
        let record = feed_pieces(&bytes, &[bytes.len()]);
        prop_assert!(is_consistent(&record));
        RequestDecoder::new().feed(&bytes, |_| {});
        SseParser::new(64).feed(&bytes, |_, _| {});
        let _ = Payload::parse(&bytes);
    }

    #[test]
    fn json_of_any_shape_never_panics(text in "\\{(\"(choices|usage|error|id|delta)\":[\\[\\]\\{\\}0-9a-z\", :.-]{0,40},?){0,4}\\}?") {
        let _ = Payload::parse(text.as_bytes());
    }

    #[test]
    fn a_well_formed_message_is_valid_and_whole(message in message()) {
        let (framing, taken, body) = decode(&message.bytes);
        prop_assert_eq!(framing, Framing::Valid);
        prop_assert_eq!(taken, message.bytes.len());
        prop_assert_eq!(body, message.body);
    }

    #[test]
    fn a_message_cut_anywhere_is_incomplete(message in message(), place in any::<Index>()) {
        let cut = place.index(message.bytes.len());
        let (framing, taken, _) = decode(&message.bytes[..cut]);
        prop_assert_eq!(framing, Framing::Incomplete);
        prop_assert_eq!(taken, cut);
    }

    #[test]
    fn pipelined_messages_decode_as_if_alone(messages in vec(message(), 1..5)) {
        let all = messages.iter().flat_map(|m| m.bytes.clone()).collect::<Vec<_>>();
        let mut rest = &all[..];
        for message in &messages {
            let (framing, taken, body) = decode(rest);
            prop_assert_eq!(framing, Framing::Valid);
            prop_assert_eq!(taken, message.bytes.len());
            prop_assert_eq!(&body, &message.body);
            rest = &rest[taken..];
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn lost_bytes_are_never_called_invalid(
        message in message(),
        first in any::<Index>(),
        last in any::<Index>(),
    ) {
        let (first, last) = (first.index(message.bytes.len()), last.index(message.bytes.len()));
        let (start, end) = (first.min(last), first.max(last) + 1);
        let mut timeline = ResponseTimeline::new(Method::Post);
        timeline.feed(&message.bytes[..start], Nanos::new(1));
        let lost = u64::try_from(end - start).unwrap();
        prop_assert_eq!(timeline.gap(lost, Nanos::new(2)), lost);
        timeline.feed(&message.bytes[end..], Nanos::new(3));
        let unknown = matches!(timeline.record().framing, Framing::Unknown { .. });
        prop_assert!(unknown, "{:?}", timeline.record().framing);
        let accounted = timeline.record().bytes;
        prop_assert_eq!(accounted, u64::try_from(message.bytes.len()).unwrap());
    }
}
