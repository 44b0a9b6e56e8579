//! Payloads of events and bodies of errors: what is kept of them stays within its bounds.

use protocol::openai::{ErrorInfo, MAX_NAME, MAX_TEXT, Payload, parse_error_body};
use protocol::trace::{TraceId, TraceParent};

pub(super) fn run(bytes: &[u8]) {
    if let Payload::Chunk(chunk) = Payload::parse(bytes) {
        chunk.error.iter().for_each(bounded);
        assert!(!chunk.has_content || chunk.has_token, "content without a token");
    }
    bounded(&parse_error_body(bytes));
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(parent) = text.parse::<TraceParent>() {
        assert_eq!(parent.to_string().parse::<TraceParent>().ok(), Some(parent));
    }
    if let Ok(id) = text.parse::<TraceId>() {
        assert_eq!(id.to_string().parse::<TraceId>().ok(), Some(id));
    }
}

fn bounded(error: &ErrorInfo) {
    let within =
        |text: &Option<String>, most| text.as_ref().is_none_or(|t| t.chars().count() <= most);
    assert!(within(&error.message, MAX_TEXT), "a message beyond its bound");
    assert!(
        within(&error.code, MAX_NAME) && within(&error.kind, MAX_NAME),
        "a name beyond its bound"
    );
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    const PAYLOADS: [&str; 12] = [
        "[DONE]",
        r#"{"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_content":"a"},"finish_reason":"stop"}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"text":"a"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":1e3,"completion_tokens":-1}}"#,
        r#"{"error":{"message":"prefill timeout","type":"x","code":504}}"#,
        r#"{"object":"error","message":"bad","code":400}"#,
        r#"{"detail":[{"msg":"field required"}]}"#,
        r#"{"error":false,"choices":null}"#,
        "00-4bf92f3577b34da6a3ce929d0e0e4736-a3ce929d0e0e4737-00",
        "4bf92f3577b34da6a3ce929d0e0e4736",
    ];
    PAYLOADS.iter().map(|text| text.as_bytes().to_vec()).collect()
}
