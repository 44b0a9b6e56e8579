//! Request bodies: deterministic text for block identities, a salt, and the JSON around them.
//!
//! The text is lower-case words: it never needs JSON escaping, so the size of a body follows from
//! the token counts alone.

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::trace::{Content, Message, Row};

/// LoxiLB stops inspecting a request body here, so a cache-aware choice beyond it is a guess.
pub const INSPECTION_LIMIT_BYTES: usize = 768 * 1024;

/// 32 entries, one per 5 bits; about every fifth character is a space.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz      ";
const SALT_BYTES: usize = 16;

/// Text that keeps the caches of two runs apart: it replaces the first 16 bytes of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Salt([u8; SALT_BYTES]);

impl Salt {
    /// The salt of one (arm, rate, repetition): 64 bits of SHA-256 over seed and names, in hex.
    #[must_use]
    pub fn derive(seed: u64, arm: &str, rate_rps: f64, repetition: u32) -> Self {
        let text = format!("goodput salt\n{seed}\n{arm}\n{rate_rps}\n{repetition}");
        let digest = Sha256::digest(text.as_bytes());
        let mut salt = [0; SALT_BYTES];
        for (index, byte) in digest.iter().take(SALT_BYTES / 2).enumerate() {
            salt[2 * index] = hex_digit(byte >> 4);
            salt[2 * index + 1] = hex_digit(byte & 0xf);
        }
        Self(salt)
    }

    /// Its text.
    #[must_use]
    pub fn as_text(&self) -> String {
        self.0.iter().copied().map(char::from).collect()
    }

    /// Replaces the start of `text`, never changing its length in bytes. Where a character straddles
    /// the 16th byte, it goes too and the salt is padded.
    fn replace_start(self, text: &mut String) {
        let end = (SALT_BYTES.min(text.len())..=text.len())
            .find(|&end| text.is_char_boundary(end))
            .unwrap_or(text.len());
        let salt = self.as_text();
        let replacement: String = salt.chars().chain(std::iter::repeat('.')).take(end).collect();
        text.replace_range(..end, &replacement);
    }
}

fn hex_digit(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 }
}

/// The OpenAI call that a body is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Api {
    /// `/v1/chat/completions` with `messages`.
    #[default]
    Chat,
    /// `/v1/completions` with `prompt`.
    Completions,
}

impl Api {
    /// Path below the base URL.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
        }
    }
}

/// How bodies are written; pre-registered per campaign and engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyOptions {
    /// `model`, as the gateway knows it.
    pub model: String,
    /// Bytes of text per token of a Mooncake row.
    pub bytes_per_token: u64,
    /// The call that Mooncake rows are sent to; prompt rows choose by their content.
    pub blocks_api: Api,
    /// Sends `ignore_eos: true`, where the engine knows it.
    pub ignore_eos: bool,
    /// Sends `min_tokens` equal to `max_tokens`, where the engine knows it.
    pub min_tokens: bool,
}

impl Default for BodyOptions {
    fn default() -> Self {
        Self {
            model: "default".to_owned(),
            bytes_per_token: 4,
            blocks_api: Api::Chat,
            ignore_eos: false,
            min_tokens: false,
        }
    }
}

/// A body and the call it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Which call.
    pub api: Api,
    /// JSON.
    pub json: Vec<u8>,
}

impl Body {
    /// Gateways stop inspecting before its end.
    #[must_use]
    pub fn exceeds_inspection(&self) -> bool {
        self.json.len() > INSPECTION_LIMIT_BYTES
    }
}

#[derive(Serialize)]
struct WireBody<'a> {
    model: &'a str,
    #[serde(flatten)]
    ask: Ask<'a>,
    max_tokens: u64,
    temperature: u8,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_eos: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_tokens: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Ask<'a> {
    Messages(&'a [Message]),
    Prompt(&'a str),
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// Builds the body of one row.
///
/// # Errors
/// [`serde_json::Error`] when it cannot be written, which no checked row causes.
pub fn body(
    row: &Row,
    salt: Option<Salt>,
    options: &BodyOptions,
) -> Result<Body, serde_json::Error> {
    match &row.content {
        Content::Blocks { hash_ids, block_tokens, input_tokens } => {
            let per_token = options.bytes_per_token;
            let mut text =
                blocks_text(hash_ids, block_tokens * per_token, input_tokens * per_token);
            salted(&mut text, salt);
            match options.blocks_api {
                Api::Chat => chat(row, &[user(text)], options),
                Api::Completions => completions(row, &text, options),
            }
        }
        Content::Messages(messages) => {
            let mut messages = messages.clone();
            if let Some(first) = messages.first_mut() {
                salted(&mut first.content, salt);
            }
            chat(row, &messages, options)
        }
        Content::Prompt(prompt) => {
            let mut prompt = prompt.clone();
            salted(&mut prompt, salt);
            completions(row, &prompt, options)
        }
    }
}

fn user(content: String) -> Message {
    Message { role: "user".to_owned(), content }
}

fn salted(text: &mut String, salt: Option<Salt>) {
    if let Some(salt) = salt {
        salt.replace_start(text);
    }
}

fn chat(row: &Row, messages: &[Message], options: &BodyOptions) -> Result<Body, serde_json::Error> {
    write(Api::Chat, Ask::Messages(messages), row, options)
}

fn completions(row: &Row, prompt: &str, options: &BodyOptions) -> Result<Body, serde_json::Error> {
    write(Api::Completions, Ask::Prompt(prompt), row, options)
}

fn write(
    api: Api,
    ask: Ask<'_>,
    row: &Row,
    options: &BodyOptions,
) -> Result<Body, serde_json::Error> {
    let wire = WireBody {
        model: &options.model,
        ask,
        max_tokens: row.output_tokens,
        temperature: 0,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        ignore_eos: options.ignore_eos.then_some(true),
        min_tokens: options.min_tokens.then_some(row.output_tokens),
    };
    Ok(Body { api, json: serde_json::to_vec(&wire)? })
}

/// Concatenates the texts of the blocks and cuts the last one to `total` bytes.
#[must_use]
pub fn blocks_text(hash_ids: &[u64], block_bytes: u64, total: u64) -> String {
    let total = usize::try_from(total).unwrap_or(usize::MAX);
    let block_bytes = usize::try_from(block_bytes).unwrap_or(usize::MAX);
    let mut text = String::with_capacity(total);
    for &id in hash_ids {
        let wanted = block_bytes.min(total - text.len());
        push_block(&mut text, id, wanted);
    }
    text
}

/// The first `wanted` bytes of the endless text that belongs to `id`.
fn push_block(text: &mut String, id: u64, wanted: usize) {
    let end = text.len() + wanted;
    let mut state = id;
    while text.len() < end {
        let mut bits = splitmix64(&mut state);
        for _ in 0..(end - text.len()).min(12) {
            text.push(char::from(LETTERS[usize::from(bits.to_le_bytes()[0] & 31)]));
            bits >>= 5;
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): a full-period mix, so that neighbouring ids give unlike texts.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A minimal one-message body, for health checks.
///
/// # Errors
/// [`serde_json::Error`] when it cannot be written.
pub fn short_chat(
    prompt: &str,
    max_tokens: u64,
    options: &BodyOptions,
) -> Result<Body, serde_json::Error> {
    let content = Content::Messages(vec![user(prompt.to_owned())]);
    body(&Row { line: 0, arrival_ns: 0, output_tokens: max_tokens, content }, None, options)
}

/// Adds or replaces top-level keys of a body, for engines that need their own.
///
/// # Errors
/// [`serde_json::Error`] when the body is no JSON object.
pub fn with_keys(body: &Body, keys: &Map<String, Value>) -> Result<Body, serde_json::Error> {
    let mut object: Map<String, Value> = serde_json::from_slice(&body.json)?;
    object.extend(keys.clone());
    Ok(Body { api: body.api, json: serde_json::to_vec(&object)? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(hash_ids: Vec<u64>, input_tokens: u64) -> Row {
        let content = Content::Blocks { hash_ids, block_tokens: 8, input_tokens };
        Row { line: 1, arrival_ns: 0, output_tokens: 7, content }
    }

    fn common_prefix(a: &str, b: &str) -> usize {
        a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
    }

    proptest! {
        #[test]
        fn prefixes_are_shared_exactly_as_far_as_the_ids_are(
            shared in prop::collection::vec(0_u64..1000, 0..5),
            a in 1000_u64..2000,
            b in 2000_u64..3000,
        ) {
            let ids = |last| shared.iter().copied().chain([last]).collect::<Vec<_>>();
            let total = 32 * u64::try_from(shared.len() + 1).unwrap();
            let (a, b) = (blocks_text(&ids(a), 32, total), blocks_text(&ids(b), 32, total));
            let common = common_prefix(&a, &b);
            prop_assert!(common >= 32 * shared.len());
            // Unlike blocks may agree by chance in a few characters, never in a whole block.
            prop_assert!(common < 32 * shared.len() + 16);
        }

        #[test]
        fn a_shorter_prompt_is_the_start_of_the_longer(len in 1_u64..96, cut in 0_u64..96) {
            let cut = cut.min(len);
            let (long, short) = (blocks_text(&[1, 2, 3], 32, len), blocks_text(&[1, 2, 3], 32, cut));
            prop_assert_eq!(u64::try_from(long.len()).unwrap(), len);
            prop_assert!(long.starts_with(&short));
        }

        #[test]
        fn text_needs_no_escaping(id: u64) {
            let text = blocks_text(&[id], 4096, 4096);
            prop_assert!(text.bytes().all(|b| b == b' ' || b.is_ascii_lowercase()));
        }

        #[test]
        fn a_salt_never_changes_a_length(text in "\\PC{1,40}") {
            let mut salted = text.clone();
            Salt::derive(1, "rr", 40.0, 1).replace_start(&mut salted);
            prop_assert_eq!(salted.len(), text.len());
        }
    }

    #[test]
    fn a_body_asks_what_the_definitions_say() {
        let options = BodyOptions { model: "m".into(), ..BodyOptions::default() };
        let body = body(&row(vec![1, 2], 12), None, &options).unwrap();
        let text = blocks_text(&[1, 2], 32, 48);
        let expected = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}],"max_tokens":7,"temperature":0,"stream":true,"stream_options":{{"include_usage":true}}}}"#
        );
        assert_eq!(String::from_utf8(body.json).unwrap(), expected);
    }

    #[test]
    fn engine_keys_are_sent_only_when_registered() {
        let options = BodyOptions { ignore_eos: true, min_tokens: true, ..BodyOptions::default() };
        let body = body(&row(vec![1], 8), None, &options).unwrap();
        let value: Value = serde_json::from_slice(&body.json).unwrap();
        assert_eq!((&value["ignore_eos"], &value["min_tokens"]), (&Value::Bool(true), &7.into()));
    }

    #[test]
    fn a_salt_replaces_sixteen_bytes_and_differs_by_arm_rate_and_repetition() {
        let options = BodyOptions::default();
        let salts = [
            Salt::derive(1, "a", 40.0, 1),
            Salt::derive(1, "b", 40.0, 1),
            Salt::derive(1, "a", 50.0, 1),
            Salt::derive(1, "a", 40.0, 2),
            Salt::derive(2, "a", 40.0, 1),
        ];
        let bodies =
            salts.map(|salt| body(&row(vec![1, 2], 16), Some(salt), &options).unwrap().json);
        let plain = body(&row(vec![1, 2], 16), None, &options).unwrap().json;
        for (index, salted) in bodies.iter().enumerate() {
            assert_eq!(salted.len(), plain.len());
            let changed = salted.iter().zip(&plain).rposition(|(a, b)| a != b).unwrap();
            let start = salted.iter().zip(&plain).position(|(a, b)| a != b).unwrap();
            assert!(changed - start < 16);
            assert!(bodies[..index].iter().all(|other| other != salted));
        }
    }

    #[test]
    fn prompt_rows_choose_the_call_by_their_content() {
        let options = BodyOptions::default();
        let content = Content::Prompt("once upon a time".into());
        let row = Row { line: 1, arrival_ns: 0, output_tokens: 3, content };
        let body = body(&row, None, &options).unwrap();
        assert_eq!(body.api, Api::Completions);
        let value: Value = serde_json::from_slice(&body.json).unwrap();
        assert_eq!(value["prompt"], "once upon a time");
    }
}
