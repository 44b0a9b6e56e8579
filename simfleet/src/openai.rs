//! The OpenAI request and response bodies that the fleet reads and writes.

use serde::{Deserialize, Serialize};

/// Tokens generated when a request names no number (the OpenAI completions default).
const DEFAULT_MAX_TOKENS: u64 = 16;

/// The fields of a completion request that the fleet looks at; others are accepted and ignored.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct CompletionRequest {
    pub(crate) model: Option<String>,
    messages: Option<Vec<Message>>,
    prompt: Option<String>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    kv_transfer_params: Option<KvTransfer>,
}

#[derive(Clone, Debug, Deserialize)]
struct Message {
    content: Option<Content>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Clone, Debug, Deserialize)]
struct Part {
    text: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct KvTransfer {
    do_remote_prefill: Option<bool>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

impl CompletionRequest {
    /// The prompt's bytes: the contents of all messages, or the prompt, one after the other.
    pub(crate) fn prompt(&self) -> Option<String> {
        let messages = self.messages.as_ref().map(|m| m.iter().map(Message::text).collect());
        messages.or_else(|| self.prompt.clone())
    }

    pub(crate) fn max_tokens(&self) -> u64 {
        self.max_completion_tokens.or(self.max_tokens).unwrap_or(DEFAULT_MAX_TOKENS)
    }

    /// Another engine has computed the prompt (vLLM's `kv_transfer_params`).
    pub(crate) fn prefilled(&self) -> bool {
        self.kv_transfer_params.and_then(|it| it.do_remote_prefill).unwrap_or(false)
    }

    pub(crate) fn stream(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    pub(crate) fn include_usage(&self) -> bool {
        self.stream_options.and_then(|o| o.include_usage).unwrap_or(false)
    }
}

impl Message {
    fn text(&self) -> String {
        match &self.content {
            None => String::new(),
            Some(Content::Text(text)) => text.clone(),
            Some(Content::Parts(parts)) => parts.iter().filter_map(|p| p.text.clone()).collect(),
        }
    }
}

/// Which of the two completion calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    Chat,
    Text,
}

impl Api {
    /// The call that a path names.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        match path {
            "/v1/chat/completions" => Some(Self::Chat),
            "/v1/completions" => Some(Self::Text),
            _ => None,
        }
    }
}

/// What is said of tokens at the end of an answer.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Usage {
    prompt_tokens: u64,
    total_tokens: u64,
    completion_tokens: u64,
    prompt_tokens_details: PromptDetails,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct PromptDetails {
    cached_tokens: u64,
}

impl Usage {
    pub(crate) fn new(prompt_tokens: u64, completion_tokens: u64, cached_tokens: u64) -> Self {
        Self {
            prompt_tokens,
            total_tokens: prompt_tokens.saturating_add(completion_tokens),
            completion_tokens,
            prompt_tokens_details: PromptDetails { cached_tokens },
        }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: &'a [Choice<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}

#[derive(Default, Serialize)]
struct Choice<'a> {
    index: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<Delta<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Delta<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    logprobs: Option<()>,
    finish_reason: Option<&'a str>,
}

#[derive(Default, Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
}

/// Writes the bodies of one answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    api: Api,
    id: String,
    model: String,
    created: u64,
}

impl Answer {
    /// An answer named after `suffix`; `created` is Unix time in seconds.
    pub(crate) fn new(api: Api, suffix: &str, model: &str, created: u64) -> Self {
        let prefix = if api == Api::Chat { "chatcmpl" } else { "cmpl" };
        Self { api, id: format!("{prefix}-{suffix}"), model: model.to_owned(), created }
    }

    /// The role-only first chunk of a chat stream.
    pub(crate) fn role_event(&self) -> Option<String> {
        let delta = Delta { role: Some("assistant"), content: Some("") };
        let choice = Choice { delta: Some(delta), ..Choice::default() };
        (self.api == Api::Chat).then(|| self.event(&[choice], None))
    }

    /// A chunk with text.
    pub(crate) fn text_event(&self, text: &str) -> String {
        self.event(&[self.piece(Some(text), None)], None)
    }

    /// The chunk that says why the answer ended.
    pub(crate) fn finish_event(&self) -> String {
        self.event(&[self.piece(None, Some("length"))], None)
    }

    /// The trailing chunk without choices.
    pub(crate) fn usage_event(&self, usage: Usage) -> String {
        self.event(&[], Some(usage))
    }

    /// The body of an answer that is not streamed.
    pub(crate) fn whole(&self, text: &str, usage: Usage) -> String {
        let message = Delta { role: Some("assistant"), content: Some(text) };
        let (object, choice) = match self.api {
            Api::Chat => {
                ("chat.completion", Choice { message: Some(message), ..Choice::default() })
            }
            Api::Text => ("text_completion", Choice { text: Some(text), ..Choice::default() }),
        };
        self.body(object, &[Choice { finish_reason: Some("length"), ..choice }], Some(usage))
    }

    fn piece<'a>(&self, text: Option<&'a str>, finish_reason: Option<&'a str>) -> Choice<'a> {
        match self.api {
            Api::Chat => {
                let delta = Some(Delta { role: None, content: text });
                Choice { delta, finish_reason, ..Choice::default() }
            }
            Api::Text => {
                Choice { text: Some(text.unwrap_or("")), finish_reason, ..Choice::default() }
            }
        }
    }

    fn event(&self, choices: &[Choice<'_>], usage: Option<Usage>) -> String {
        let object = match self.api {
            Api::Chat => "chat.completion.chunk",
            Api::Text => "text_completion",
        };
        format!("data: {}\n\n", self.body(object, choices, usage))
    }

    fn body(&self, object: &'static str, choices: &[Choice<'_>], usage: Option<Usage>) -> String {
        let (id, model, created) = (self.id.as_str(), self.model.as_str(), self.created);
        let body = Body { id, object, created, model, choices, usage };
        serde_json::to_string(&body).unwrap_or_default()
    }
}

/// An error body in vLLM's form.
pub(crate) fn error_body(status: u16, kind: &str, message: &str) -> String {
    let error = serde_json::json!({
        "message": message, "type": kind, "param": null, "code": status,
    });
    serde_json::json!({ "error": error }).to_string()
}
