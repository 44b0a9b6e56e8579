//! Server-sent events: any split gives the same items.

use protocol::cases::cases;
use protocol::sse::SseParser;

/// Small enough that the bound is reached.
const LIMIT: usize = 512;

pub(super) fn run(input: &[u8]) {
    let Some((first, bytes)) = input.split_first() else { return };
    let step = usize::from(*first) % 17 + 1;
    for limit in [LIMIT, usize::MAX] {
        assert_eq!(read(limit, bytes, bytes.len().max(1)), read(limit, bytes, step));
    }
}

/// Every item with the place of its last byte, and whether the stream would end within one.
fn read(limit: usize, bytes: &[u8], step: usize) -> (Vec<(String, usize)>, bool) {
    let mut parser = SseParser::new(limit);
    let (mut items, mut before) = (Vec::new(), 0);
    for piece in bytes.chunks(step) {
        parser.feed(piece, |item, at| {
            assert!((1..=piece.len()).contains(&at), "an item ends outside its input");
            items.push((format!("{item:?}"), before + at));
        });
        before += piece.len();
    }
    (items, parser.has_unterminated_event())
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    const BODIES: [&[u8]; 4] = [
        b"\x03\xef\xbb\xbfdata: a\ndata: b\r\n\r\nevent: error\rdata:c\r\r: comment\n\n",
        b"\x01id: 1\nretry: 10\ndata\n\n:\n\ndata: [DONE]\n\n",
        b"\x02data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
        b"\x10\n\r\n\r\r\ndata:  \n",
    ];
    let of_cases = cases().into_iter().map(|case| [&[4][..], &case.bytes()].concat());
    let short = of_cases.filter(|bytes| bytes.len() < 2_048);
    BODIES.iter().map(|bytes| bytes.to_vec()).chain(short).collect()
}
