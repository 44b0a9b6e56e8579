//! Prefixes of prompts, hashed while segments come in every way.

use proptest::prelude::*;

use super::*;
use crate::prompt::{PREFIX_SIZES, PrefixRow, PromptEnd, Salt};

/// A request whose prompt is `bytes` long.
fn request(bytes: usize) -> Vec<u8> {
    let text: String = ('a'..='z').cycle().take(bytes).collect();
    post(
        1,
        &format!("{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]}}"),
    )
}

/// The packets of a conversation about `request`, cut at `cuts`.
fn talk(request: &[u8], cuts: &[usize]) -> Vec<Packet> {
    let mut talk = Talk::open();
    let mut at = 0;
    for cut in cuts.iter().copied().chain([request.len()]) {
        if cut > at {
            talk.request(&request[at..cut]);
            at = cut;
        }
    }
    talk.response(&stream(1)).client_fin().endpoint_fin();
    talk.packets
}

fn reading() -> Told {
    let mut told = Told::with(FlowLimits::default());
    told.table.read_prompts(true);
    told
}

fn row(told: &mut Told) -> serde_json::Value {
    let salt: Salt = "000102030405060708090a0b0c0d0e0f".parse().unwrap();
    serde_json::to_value(PrefixRow::new(&told.one(), &salt)).unwrap()
}

fn hashed(row: &serde_json::Value) -> usize {
    row["prefixes"].as_array().unwrap().iter().filter(|hash| hash.is_string()).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However a request is cut into segments, and whatever is repeated or comes out of order.
    #[test]
    fn rows_do_not_depend_on_segments(
        bytes in 0_usize..70_000,
        mut cuts in proptest::collection::vec(0_usize..70_300, 0..8),
        swapped in any::<prop::sample::Index>(),
        repeated in any::<prop::sample::Index>(),
    ) {
        let request = request(bytes);
        cuts.iter_mut().for_each(|cut| *cut = (*cut).min(request.len()));
        cuts.sort_unstable();
        let plain = row(reading().take(&talk(&request, &[])));
        let mut packets = talk(&request, &cuts);
        // Between the handshake and the response.
        let parts = packets.len() - 5;
        let again = packets[2 + repeated.index(parts)].clone();
        if parts > 1 {
            let first = 2 + swapped.index(parts - 1);
            packets.swap(first, first + 1);
        }
        packets.insert(2 + parts, again);
        prop_assert_eq!(row(reading().take(&packets)), plain);
    }
}

#[test]
fn every_size_needs_every_byte_of_its_prefix() {
    let request = request(70_000);
    for (copied, expected) in [(0, 0), (1100, 0), (1400, 1), (5000, 2), (30_000, 3), (70_000, 4)] {
        let mut packets = talk(&request, &[copied]);
        // What lies beyond the budget passes uncopied.
        let beyond = if copied == 0 { 2 } else { 3 };
        packets[beyond] = packets[beyond].clone().uncopied();
        let row = row(reading().take(&packets));
        assert_eq!(hashed(&row), expected, "{copied}: {row}");
        let end = if expected == 4 { PromptEnd::Longest } else { PromptEnd::Cut };
        assert_eq!(row["prompt_end"], serde_json::to_value(end).unwrap(), "{copied}");
    }
    assert_eq!(PREFIX_SIZES, [1024, 4096, 16_384, 65_536]);
}

/// A hole in the middle: what follows it can't be placed, though it was seen.
#[test]
fn a_lost_segment_ends_what_is_known() {
    let request = request(20_000);
    let mut packets = talk(&request, &[3000, 4000]);
    packets.remove(3);
    let row = row(reading().take(&packets));
    assert_eq!((hashed(&row), row["prompt_end"].as_str()), (1, Some("cut")));
}

/// Repeated with other content: nobody knows which bytes the server got.
#[test]
fn contradicted_bytes_have_no_hash() {
    let request = request(3000);
    let mut packets = talk(&request, &[2900]);
    let mut other = packets[2].clone();
    other.payload[2800] ^= 1;
    packets.insert(3, other);
    let row = row(reading().take(&packets));
    assert_eq!((hashed(&row), row["prompt_end"].as_str()), (0, Some("cut")));
}

#[test]
fn requests_without_a_prompt_are_known_as_such() {
    let get = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
    let row = row(reading().take(&talk(get, &[])));
    assert_eq!((hashed(&row), row["prompt_end"].as_str()), (0, Some("absent")));
}

#[test]
fn nothing_is_hashed_unless_it_is_asked_for() {
    assert_eq!(Told::of(&talk(&request(3000), &[])).one().prompt, None);
}
