//! Prompt rows: the text itself.

use serde::{Deserialize, Serialize};

use super::error::Flaw;
use super::load::{MAX_TOKENS, arrival_ns};
use super::{Content, Message, Row};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PromptRow {
    pub(super) timestamp_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) messages: Option<Vec<Message>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt: Option<String>,
    pub(super) max_tokens: u64,
}

/// Reads and checks one row.
pub(super) fn parse(text: &str, line: usize) -> Result<Row, Flaw> {
    let wire: PromptRow = serde_json::from_str(text)?;
    let arrival_ns = arrival_ns("timestamp_ms", wire.timestamp_ms)?;
    let (key, value, max) = ("max_tokens", wire.max_tokens, MAX_TOKENS);
    match value {
        0 => return Err(Flaw::NoTokens { key }),
        1..=MAX_TOKENS => {}
        _ => return Err(Flaw::TooLong { key, value, max }),
    }
    let content = content(wire.messages, wire.prompt)?;
    Ok(Row { line, arrival_ns, output_tokens: value, content })
}

fn content(messages: Option<Vec<Message>>, prompt: Option<String>) -> Result<Content, Flaw> {
    match (messages, prompt) {
        (Some(_), Some(_)) => Err(Flaw::OneContent("both")),
        (None, None) => Err(Flaw::OneContent("neither")),
        (None, Some(prompt)) if prompt.is_empty() => Err(Flaw::EmptyText("prompt")),
        (None, Some(prompt)) => Ok(Content::Prompt(prompt)),
        // The salt that keeps caches of two runs apart replaces the first bytes of the first message.
        (Some(messages), None) => match messages.first() {
            Some(first) if !first.content.is_empty() => Ok(Content::Messages(messages)),
            Some(_) => Err(Flaw::EmptyText("the first message")),
            None => Err(Flaw::EmptyText("messages")),
        },
    }
}
