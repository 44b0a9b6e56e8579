//! Feeding the same bytes in different pieces, with stamps that make the results comparable.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails by panicking")]

use protocol::http1::{Close, Method};
use protocol::{Nanos, ResponseTimeline, TimelineRecord};

fn stamp(place: usize) -> Nanos {
    Nanos::new(u64::try_from(place).unwrap())
}

/// Feeds pieces that end at `ends`, each stamped with its end, then closes.
pub(crate) fn feed_pieces(bytes: &[u8], ends: &[usize]) -> TimelineRecord {
    let mut timeline = ResponseTimeline::new(Method::Post);
    let mut start = 0;
    for end in ends {
        let piece = &bytes[start..*end];
        let report = timeline.feed(piece, stamp(*end));
        assert!(report.consumed == piece.len() || report.complete);
        timeline.excess(u64::try_from(piece.len() - report.consumed).unwrap());
        start = *end;
    }
    timeline.close(Close::Eof, stamp(bytes.len() + 1));
    timeline.into_record()
}

/// Feeds byte by byte, each stamped with its place, counted from 1.
pub(crate) fn feed_bytewise(bytes: &[u8]) -> TimelineRecord {
    feed_pieces(bytes, &(1..=bytes.len()).collect::<Vec<_>>())
}

/// Moves each stamp of a bytewise record to the end of the piece that holds its byte.
pub(crate) fn remap(mut record: TimelineRecord, ends: &[usize]) -> TimelineRecord {
    let piece_end = |stamp: &mut Nanos| {
        let holds = |end: &&usize| u64::try_from(**end).unwrap() >= stamp.get();
        if let Some(end) = ends.iter().find(holds) {
            *stamp = self::stamp(*end);
        }
    };
    let r = &mut record;
    let singles = [
        &mut r.first_byte,
        &mut r.last_byte,
        &mut r.last_body_byte,
        &mut r.first_event,
        &mut r.first_token,
        &mut r.first_content_token,
        &mut r.last_token,
        &mut r.last_event,
        &mut r.done,
        &mut r.last_comment,
        &mut r.framing_end,
    ];
    singles.into_iter().flatten().for_each(piece_end);
    r.token_stamps.iter_mut().for_each(piece_end);
    r.head.iter_mut().map(|head| &mut head.stamp).for_each(piece_end);
    r.finish.iter_mut().map(|finish| &mut finish.stamp).for_each(piece_end);
    r.inband_error.iter_mut().map(|error| &mut error.stamp).for_each(piece_end);
    r.bad_payload.iter_mut().map(|bad| &mut bad.stamp).for_each(piece_end);
    record
}
