//! The event-stream grammar.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails by panicking")]

use protocol::sse::{SseItem, SseParser};

#[derive(Debug, PartialEq, Eq)]
enum Item {
    Event(String, String),
    Comment,
    TooLarge,
}

fn parse_with(limit: usize, pieces: &[&[u8]]) -> (Vec<(Item, usize)>, bool) {
    let mut parser = SseParser::new(limit);
    let mut items = Vec::new();
    let mut before = 0;
    for piece in pieces {
        parser.feed(piece, |item, end| {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let item = match item {
                SseItem::Event { kind, data } => Item::Event(text(kind), text(data)),
                SseItem::Comment => Item::Comment,
                SseItem::TooLarge => Item::TooLarge,
            };
            items.push((item, before + end));
        });
        before += piece.len();
    }
    (items, parser.has_unterminated_event())
}

fn events(stream: &str) -> Vec<Item> {
    let (items, _) = parse_with(1024, &[stream.as_bytes()]);
    items.into_iter().map(|(item, _)| item).collect()
}

fn event(kind: &str, data: &str) -> Item {
    Item::Event(kind.into(), data.into())
}

#[test]
fn examples_of_the_standard() {
    assert_eq!(events("data: YHOO\ndata: +2\ndata: 10\n\n"), [event("", "YHOO\n+2\n10")]);
    let stream =
        ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event";
    assert_eq!(
        events(stream),
        [Item::Comment, event("", "first event"), event("", "second event")]
    );
    assert_eq!(events("data\n\ndata\ndata\n\ndata:"), [event("", ""), event("", "\n")]);
    assert_eq!(events("data:test\n\ndata: test\n\n"), [event("", "test"), event("", "test")]);
}

#[test]
fn an_event_ends_at_the_byte_that_completes_its_blank_line() {
    for (stream, end) in [("data: x\n\n", 9), ("data: x\r\r", 9), ("data: x\r\n\r\n", 10)] {
        let (items, _) = parse_with(1024, &[stream.as_bytes()]);
        assert_eq!(items, [(event("", "x"), end)], "{stream:?}");
    }
}

#[test]
fn a_name_without_data_is_no_event() {
    assert_eq!(events("event: ping\n\ndata: x\n\n"), [event("", "x")]);
    assert_eq!(events("event: ping\ndata: x\n\n"), [event("ping", "x")]);
}

#[test]
fn one_byte_order_mark_is_dropped_in_any_split() {
    let bytes = "\u{feff}data: x\n\n".as_bytes();
    for cut in 0..=3 {
        let (items, _) = parse_with(1024, &[&bytes[..cut], &bytes[cut..]]);
        assert_eq!(items, [(event("", "x"), 12)], "{cut}");
    }
    let twice = "\u{feff}\u{feff}data: x\n\n";
    assert_eq!(events(twice), []);
    let (items, _) = parse_with(1024, &[b"\xef\xbb", b"data: x\n\n"]);
    assert_eq!(items, []);
}

#[test]
fn a_large_event_is_told_and_the_next_one_is_read() {
    let long = format!("data: {}\n\ndata: x\n\n", "a".repeat(100));
    let (items, _) = parse_with(64, &[long.as_bytes()]);
    assert_eq!(items, [(Item::TooLarge, 108), (event("", "x"), 117)]);
    let lines = format!("{}\ndata: x\n\n", "data: aaaaaaaaaaaaaaa\n".repeat(5));
    let (items, _) = parse_with(64, &[lines.as_bytes()]);
    assert_eq!(
        items.into_iter().map(|item| item.0).collect::<Vec<_>>(),
        [Item::TooLarge, event("", "x")]
    );
}

#[test]
fn a_long_comment_needs_no_room() {
    let comment = format!(":{}\n", "a".repeat(1000));
    let bytes = comment.as_bytes();
    for pieces in [vec![bytes], vec![&bytes[..1], &bytes[1..]], vec![&bytes[..500], &bytes[500..]]]
    {
        assert_eq!(parse_with(64, &pieces), (vec![(Item::Comment, 1002)], false));
    }
}

#[test]
fn an_event_cut_by_the_end_is_noticed() {
    assert!(parse_with(64, &[b"data: x\n"]).1);
    assert!(parse_with(64, &[b"data: x"]).1);
    assert!(!parse_with(64, &[b"data: x\n\n"]).1);
    assert!(!parse_with(64, &[b": comm"]).1);
}
