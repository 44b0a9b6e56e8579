//! The wire form of a chunk, an unstreamed reply or an error body, and what is taken from it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::loose::{Count, Filled, Text};

/// Bound on names taken from the wire (finish reasons, ids, error codes), in characters.
pub const MAX_NAME: usize = 120;
/// Bound on free text taken from the wire (error messages), in characters.
pub const MAX_TEXT: usize = 200;

/// Token counts as the server reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Tokens generated.
    pub completion_tokens: Option<u64>,
    /// Prompt tokens served from the prefix cache (`prompt_tokens_details.cached_tokens`).
    pub cached_tokens: Option<u64>,
}

/// An error object or text, cut to short names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// `code`, a name or a number.
    pub code: Option<String>,
    /// `type`.
    pub kind: Option<String>,
    /// `message`, or the whole text where the error is no object; at most [`MAX_TEXT`] characters.
    pub message: Option<String>,
    /// It names a prefill or processing timeout, anywhere: judged before anything was cut.
    #[serde(default)]
    pub names_timeout: bool,
}

/// A prefill or processing timeout, in the words that servers use.
fn names_timeout(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let timeout = ["timeout", "timed out", "time out", "timed_out"];
    timeout.iter().any(|word| text.contains(word))
        && (text.contains("prefill") || text.contains("processing"))
}

/// What one JSON object says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// It carries at least one token: content, reasoning, or a tool call with a name or arguments.
    pub has_token: bool,
    /// It carries visible content, as opposed to reasoning and tool calls.
    pub has_content: bool,
    /// Last non-empty finish reason of its choices.
    pub finish_reason: Option<String>,
    /// Token counts, when given.
    pub usage: Option<Usage>,
    /// An error that is not null.
    pub error: Option<ErrorInfo>,
    /// Response id; engines put the prefill/decode receipt there.
    pub id: Option<String>,
}

type Name = Text<MAX_NAME>;

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireChunk {
    id: Name,
    object: Name,
    choices: Option<Vec<WireChoice>>,
    usage: Option<WireUsage>,
    error: Option<Value>,
    // An error as vLLM once sent it, `object: "error"`, spreads over the top level. Cut only after it was read.
    message: Text<{ usize::MAX }>,
    code: Name,
    r#type: Name,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireChoice {
    delta: Option<WireDelta>,
    /// The unstreamed reply's counterpart of `delta`.
    message: Option<WireDelta>,
    /// Completions API.
    text: Filled,
    finish_reason: Name,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireDelta {
    content: Filled,
    reasoning: Filled,
    reasoning_content: Filled,
    tool_calls: Option<Vec<Option<WireToolCall>>>,
    function_call: Option<WireFunction>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireToolCall {
    function: Option<WireFunction>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireFunction {
    name: Filled,
    arguments: Filled,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireUsage {
    prompt_tokens: Count,
    completion_tokens: Count,
    prompt_tokens_details: Option<WireDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireDetails {
    cached_tokens: Count,
}

/// Reads one JSON object; `None` where it is none, or its choices have no known shape.
pub(super) fn parse(json: &[u8]) -> Option<Chunk> {
    if json.first() != Some(&b'{') {
        return None;
    }
    let wire = serde_json::from_slice(json).ok().or_else(|| parse_leniently(json))?;
    Some(reduce(wire))
}

/// Repeated keys are legal JSON, of which readers take the last; and the event-stream grammar has
/// malformed UTF-8 replaced, not refused.
fn parse_leniently(json: &[u8]) -> Option<WireChunk> {
    let value: Value = serde_json::from_str(&String::from_utf8_lossy(json)).ok()?;
    WireChunk::deserialize(value).ok()
}

fn reduce(wire: WireChunk) -> Chunk {
    let mut chunk = Chunk {
        id: wire.id.0.filter(|id| !id.is_empty()),
        usage: wire.usage.map(usage),
        error: wire.error.and_then(error_info),
        ..Chunk::default()
    };
    if chunk.error.is_none() && wire.object.0.as_deref() == Some("error") {
        let (code, kind) = (wire.code.0, wire.r#type.0);
        let message = wire.message.0;
        let words = [&code, &kind, &message].map(|text| text.as_deref().unwrap_or_default());
        let names_timeout = names_timeout(&words.join(" "));
        let message = message.map(|text| text.chars().take(MAX_TEXT).collect());
        chunk.error = Some(ErrorInfo { code, kind, message, names_timeout });
    }
    for choice in wire.choices.unwrap_or_default() {
        let delta = choice.delta.or(choice.message).unwrap_or_default();
        let content = choice.text.0 || delta.content.0;
        chunk.has_content |= content;
        chunk.has_token |= content || carries_hidden_token(&delta);
        chunk.finish_reason =
            choice.finish_reason.0.filter(|reason| !reason.is_empty()).or(chunk.finish_reason);
    }
    chunk
}

fn carries_hidden_token(delta: &WireDelta) -> bool {
    let named = |function: &WireFunction| function.name.0 || function.arguments.0;
    let mut calls = delta.tool_calls.iter().flatten().flatten();
    delta.reasoning.0
        || delta.reasoning_content.0
        || calls.any(|call| call.function.as_ref().is_some_and(named))
        || delta.function_call.as_ref().is_some_and(named)
}

fn usage(wire: WireUsage) -> Usage {
    Usage {
        prompt_tokens: wire.prompt_tokens.0,
        completion_tokens: wire.completion_tokens.0,
        cached_tokens: wire.prompt_tokens_details.and_then(|details| details.cached_tokens.0),
    }
}

/// Null, `false` and the empty string are how some servers say "no error".
fn error_info(value: Value) -> Option<ErrorInfo> {
    let names_timeout = names_timeout(&value.to_string());
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Object(object) => Some(ErrorInfo {
            code: object.get("code").and_then(|code| short_text(code, MAX_NAME)),
            kind: object.get("type").and_then(|kind| short_text(kind, MAX_NAME)),
            message: object.get("message").and_then(|message| short_text(message, MAX_TEXT)),
            names_timeout,
        }),
        other => Some(ErrorInfo {
            message: short_text(&other, MAX_TEXT),
            names_timeout,
            ..ErrorInfo::default()
        }),
    }
}

fn short_text(value: &Value, limit: usize) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.chars().take(limit).collect()),
        other => Some(other.to_string().chars().take(limit).collect()),
    }
}

/// Reads the body of a response that is no 200: its error object, else its first characters.
#[must_use]
pub fn parse_error_body(body: &[u8]) -> ErrorInfo {
    let parsed = parse(body.trim_ascii());
    let text = String::from_utf8_lossy(body);
    let error = parsed.and_then(|chunk| chunk.error).or_else(|| top_level_error(body));
    let error = error.unwrap_or_else(|| {
        let message = text.trim().chars().take(MAX_TEXT).collect::<String>();
        ErrorInfo { message: Some(message).filter(|text| !text.is_empty()), ..ErrorInfo::default() }
    });
    // Whatever shape it has, all of the body is the error.
    ErrorInfo { names_timeout: names_timeout(&text), ..error }
}

/// An object that is itself the error: `{"code": .., "message": ..}`, or FastAPI's `detail`.
fn top_level_error(body: &[u8]) -> Option<ErrorInfo> {
    let Value::Object(mut object) = serde_json::from_slice(body).ok()? else { return None };
    if let Some(detail) = object.remove("detail") {
        object.entry("message").or_insert(detail);
    }
    error_info(Value::Object(object)).filter(|info| *info != ErrorInfo::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_named_by_any_field_however_long_the_text_before_it() {
        let long = "x".repeat(10 * MAX_TEXT);
        let named = [
            format!(r#"{{"error":{{"message":"{long} prefill timeout"}}}}"#),
            r#"{"error":{"code":"prefill_timeout"}}"#.to_owned(),
            r#"{"error":{"type":"processing_timeout","message":"gave up"}}"#.to_owned(),
            format!(r#"{{"error":"{long} processing timed out"}}"#),
            format!(r#"{{"object":"error","message":"{long} prefill timed out"}}"#),
        ];
        for body in &named {
            let event = parse(body.as_bytes()).and_then(|chunk| chunk.error).unwrap();
            assert!(event.names_timeout, "{body}");
            assert!(event.message.is_none_or(|text| text.len() <= MAX_TEXT), "{body}");
            assert!(parse_error_body(body.as_bytes()).names_timeout, "{body}");
        }
        assert!(parse_error_body(format!("{long} prefill timeout").as_bytes()).names_timeout);
        for body in [r#"{"error":{"message":"timeout"}}"#, r#"{"error":{"code":"prefill_failed"}}"#]
        {
            assert!(!parse_error_body(body.as_bytes()).names_timeout, "{body}");
        }
    }
}
