//! Deterministic damage to every scripted response: no panic, no contradiction, no dependence on the split.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails by panicking")]

mod common;

use common::{feed_bytewise, feed_pieces, remap};
use protocol::cases::cases;
use protocol::http1::Framing;
use protocol::{StreamOutcome, TimelineRecord};

/// Marsaglia's xorshift: a fixed stream of draws, so that every run damages the same bytes.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let limit = u64::try_from(limit.max(1)).unwrap();
        usize::try_from(self.0 % limit).unwrap()
    }
}

const SALIENT: &[&[u8]] = &[
    b"\r",
    b"\n",
    b"\r\n",
    b"\r\n\r\n",
    b":",
    b";",
    b"0\r\n",
    b"ffffffffffffffff\r\n",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"data: ",
    b"event: error\n",
    b"[DONE]",
    b"{",
    b"}",
    b"\"",
    b"null",
    b"content-length: 3\r\n",
    b"transfer-encoding: chunked\r\n",
    b" ",
    b"\t",
    b"-1",
    b"1e999",
];

fn damage(bytes: &mut Vec<u8>, draws: &mut Draws) {
    let at = draws.below(bytes.len() + 1);
    match draws.below(4) {
        0 => {
            let piece = SALIENT[draws.below(SALIENT.len())];
            bytes.splice(at..at, piece.iter().copied());
        }
        1 => {
            let end = (at + draws.below(12)).min(bytes.len());
            bytes.drain(at..end);
        }
        2 => {
            let end = (at + draws.below(64)).min(bytes.len());
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << draws.below(8);
            }
        }
    }
}

fn contradiction(record: &TimelineRecord) -> Option<&'static str> {
    let outcome = StreamOutcome::of(record);
    if outcome.is_delivered() {
        let whole = record.framing == Framing::Valid && record.first_token.is_some();
        let terminal = record.finish.is_some() || record.done.is_some();
        if !whole || !terminal || record.status() != Some(200) {
            return Some("delivered without evidence");
        }
    }
    if record.first_token > record.last_token
        || record.first_token < record.first_byte.filter(|_| record.first_token.is_some())
    {
        return Some("instants out of order");
    }
    (outcome == StreamOutcome::Open).then_some("open after a close")
}

#[test]
fn damage_never_panics_contradicts_or_depends_on_the_split() {
    let mut draws = Draws(0x9e37_79b9_7f4a_7c15);
    let mut invalid = 0;
    for case in cases().into_iter().filter(|case| case.bytes().len() < 8 * 1024) {
        for round in 0..60 {
            let mut bytes = case.bytes();
            for _ in 0..=draws.below(3) {
                damage(&mut bytes, &mut draws);
            }
            let cut = draws.below(bytes.len() + 1);
            let ends = [cut, bytes.len()].into_iter().filter(|end| *end > 0).collect::<Vec<_>>();
            let record = feed_pieces(&bytes, &ends);
            assert_eq!(contradiction(&record), None, "{} round {round}", case.name);
            let reference = remap(feed_bytewise(&bytes), &ends);
            assert_eq!(record, reference, "{} round {round}", case.name);
            invalid += usize::from(matches!(record.framing, Framing::Invalid { .. }));
        }
    }
    assert!(invalid > 100, "only {invalid} damaged responses were invalid");
}
