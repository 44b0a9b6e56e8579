//! Against bodies written by another JSON library, cut in every way.

use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::*;

fn hash(pieces: &[&[u8]]) -> Prefixes {
    let mut hasher = PromptHasher::new();
    pieces.iter().for_each(|piece| hasher.feed(piece));
    hasher.finish()
}

fn whole(body: &str) -> Prefixes {
    hash(&[body.as_bytes()])
}

/// What must come of a prompt whose value is written as `value`, without blanks between tokens.
fn expected(value: &str) -> Prefixes {
    let sizes = PREFIX_SIZES.map(|size| size as usize);
    let seen = sizes.iter().filter(|size| value.len() >= **size);
    let digests: Vec<[u8; 32]> =
        seen.map(|size| Sha256::digest(&value.as_bytes()[..*size]).into()).collect();
    let longest = digests.len() == sizes.len();
    let end = if longest { PromptEnd::Longest } else { PromptEnd::Whole };
    let bytes = if longest { sizes[3] } else { value.len() };
    Prefixes { digests, bytes: u32::try_from(bytes).unwrap(), end }
}

/// Text of every awkward kind.
fn text() -> impl Strategy<Value = String> {
    let awkward = prop_oneof![
        Just("\"messages\":[".to_owned()),
        Just("\\\"}],{".to_owned()),
        Just("\u{e9}\u{1f600}\n\t".to_owned()),
        "[a-z ]{0,40}",
        proptest::collection::vec(any::<char>(), 0..6).prop_map(|it| it.into_iter().collect()),
    ];
    (proptest::collection::vec(awkward, 0..6), 0_usize..9000)
        .prop_map(|(parts, fill)| format!("{}{}", parts.concat(), "word ".repeat(fill)))
}

fn messages() -> impl Strategy<Value = Value> {
    let message = text().prop_map(|text| json!({ "role": "user", "content": text }));
    proptest::collection::vec(message, 1..4).prop_map(Value::from)
}

fn prompt() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        messages().prop_map(|value| ("messages", value)),
        text().prop_map(|value| ("prompt", Value::from(value))),
        text().prop_map(|value| ("input", Value::from(value))),
        Just(("prompt", json!([[1, 2, 3], [4, 5]]))),
    ]
}

/// Members that stand before the prompt.
fn before() -> impl Strategy<Value = String> {
    let other = json!({ "messages": [{ "prompt": "no" }], "x": "}\"]" }).to_string();
    let members = prop_oneof![
        Just("\"model\": \"m\"".to_owned()),
        Just("\"n\":1 ".to_owned()),
        Just("\"prompt\":null".to_owned()),
        Just("\"messages2\":[]".to_owned()),
        Just("\"mess\\u0061ges\":\"no\"".to_owned()),
        Just(format!("\"tools\":{other}")),
        Just("\"empty\":[]".to_owned()),
    ];
    proptest::collection::vec(members, 0..4)
        .prop_map(|members| members.into_iter().map(|it| it + ",").collect())
}

/// `bytes` in pieces that end at `cuts`.
fn cut<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn hashes_do_not_depend_on_pieces_blanks_or_what_stands_before(
        (key, value) in prompt(),
        before in before(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let compact = serde_json::to_string(&value).unwrap();
        let expected = expected(&compact);
        let body = format!("{{{before}\"{key}\":{compact},\"stream\":true}}");
        prop_assert_eq!(&hash(&cut(body.as_bytes(), &cuts)), &expected);
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let body = format!(" {{ {before}\n\"{key}\" : {pretty} }}");
        prop_assert_eq!(&hash(&cut(body.as_bytes(), &cuts)), &expected);
    }

    #[test]
    fn no_bytes_are_too_odd(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let odd = [&b"{\"prompt\":"[..], &bytes].concat();
        for body in [&bytes, &odd] {
            prop_assert_eq!(hash(&cut(body, &cuts)), hash(&[body]));
        }
    }
}

#[test]
fn bodies_without_a_prompt_have_no_hash() {
    for body in ["[]", "{}", "{\"model\":\"m\"}", "x", "{\"prompt\":null}", "{\"prompt\":5}", "{,]"]
    {
        let prefixes = whole(body);
        assert_eq!((prefixes.end, prefixes.bytes), (PromptEnd::Absent, 0), "{body}");
    }
    assert_eq!(whole("").end, PromptEnd::Cut);
    assert_eq!(PromptHasher::new().finish_whole().end, PromptEnd::Absent);
    assert_eq!(whole("{\"prompt\":\"abc").end, PromptEnd::Cut);
}

#[test]
fn a_hole_ends_the_prefixes_that_are_known() {
    let text = "a".repeat(6000);
    let body = format!("{{\"prompt\":\"{text}\"}}");
    let mut hasher = PromptHasher::new();
    hasher.feed(&body.as_bytes()[..5000]);
    hasher.lose();
    hasher.feed(&body.as_bytes()[5000..]);
    let prefixes = hasher.finish();
    assert_eq!((prefixes.digests.len(), prefixes.end), (2, PromptEnd::Cut));
    assert_eq!(prefixes.digests, whole(&body).digests);
    let mut hasher = PromptHasher::new();
    hasher.feed(body.as_bytes());
    hasher.lose();
    assert_eq!(
        hasher.clone().finish(),
        whole(&body),
        "what follows a whole prompt changes nothing"
    );
    hasher.doubt();
    assert_eq!(hasher.finish(), Prefixes::UNSEEN);
}

#[test]
fn prompts_that_part_within_a_prefix_share_the_shorter_ones() {
    let body = |tail: &str| format!("{{\"prompt\":\"{}{tail}\"}}", "a".repeat(4500));
    let (one, other) = (whole(&body(&"b".repeat(20_000))), whole(&body(&"c".repeat(20_000))));
    assert_eq!(one.digests[..2], other.digests[..2]);
    assert_ne!(one.digests[2], other.digests[2]);
}

/// The key is the salt: what is told differs with it, and no salt is printed.
#[test]
fn salts_key_the_hashes_and_stay_secret() {
    let text = "000102030405060708090a0b0c0d0e0f";
    let salt: Salt = text.parse().unwrap();
    // HMAC-SHA-256 of 32 zero bytes under that key, by Python's hmac module.
    assert_eq!(salt.key(&[0; 32]), "75408449540af98099eb936bf6d3ff41");
    assert_ne!(Salt::random().unwrap().key(&[0; 32]), salt.key(&[0; 32]));
    assert_ne!(Salt::random().unwrap(), Salt::random().unwrap());
    assert_eq!(format!("{salt:?}"), "Salt(secret)");
    for wrong in ["", "00", "000102030405060708090a0b0c0d0e0g", "+00102030405060708090a0b0c0d0e0f"]
    {
        assert_eq!(wrong.parse::<Salt>(), Err(SaltError::Form));
        assert!(wrong.is_empty() || !SaltError::Form.to_string().contains(wrong));
    }
    assert!(!format!("{:?}", whole("{\"prompt\":\"abc\"}")).contains("abc"));
}
