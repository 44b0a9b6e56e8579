//! The control plane's HTTP client: short calls to gateways, backends and agents. Never the data path.

use std::time::Duration;

use reqwest::{Client, Method, Response};
use serde_json::Value;
use tokio::runtime::Runtime;

/// A call that answers later than this counts as no answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// More than this is no answer to a call of the control plane, and would only fill memory.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// Why a call gave nothing to use.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The client itself could not be made.
    #[error("cannot start the HTTP client: {0}; check the limits on threads and open files")]
    Start(String),
    /// No answer.
    #[error("{url}: no answer ({why}); start the service, or correct the URL")]
    NoAnswer {
        /// As called.
        url: String,
        /// Why.
        why: String,
    },
    /// The answer does not end.
    #[error("{url}: the answer is larger than {limit} bytes; is this the right URL?")]
    TooLarge {
        /// As called.
        url: String,
        /// Bytes that were read before giving up.
        limit: usize,
    },
    /// Another status than the call promises.
    #[error("{url}: status {status}: {body}")]
    Status {
        /// As called.
        url: String,
        /// HTTP status.
        status: u16,
        /// The start of the body.
        body: String,
    },
    /// The body is not what the call promises.
    #[error("{url}: {why}; is this the right URL?")]
    Content {
        /// As called.
        url: String,
        /// What is wrong.
        why: String,
    },
}

/// An answer with any status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Body as text.
    pub body: String,
}

/// One call.
#[derive(Clone, Debug, Default)]
pub struct Call<'a> {
    /// `GET` when nothing else is said.
    pub method: Method,
    /// Absolute URL.
    pub url: String,
    /// `Authorization: Bearer`.
    pub token: Option<&'a str>,
    /// JSON body.
    pub body: Option<Value>,
    /// Added to the client's own patience, for calls that wait on purpose.
    pub patience: Duration,
    /// Largest body that is read, bytes, instead of the client's own limit.
    pub limit: Option<usize>,
}

impl<'a> Call<'a> {
    /// A `GET`.
    #[must_use]
    pub fn get(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }

    /// The same call with a token.
    #[must_use]
    pub fn with_token(mut self, token: Option<&'a str>) -> Self {
        self.token = token;
        self
    }
}

/// A blocking client with a runtime of its own, so that callers need not be async.
#[derive(Debug)]
pub struct Control {
    runtime: Runtime,
    client: Client,
}

impl Control {
    /// A client. Proxies of the environment are ignored: the fleet is addressed directly.
    ///
    /// # Errors
    /// [`ControlError::Start`].
    pub fn new() -> Result<Self, ControlError> {
        let start = |error: &dyn std::fmt::Display| ControlError::Start(error.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| start(&error))?;
        let client = Client::builder()
            .no_proxy()
            .connect_timeout(TIMEOUT)
            .pool_max_idle_per_host(0)
            .build()
            .map_err(|error| start(&error))?;
        Ok(Self { runtime, client })
    }

    /// Makes a call; any status is an answer.
    ///
    /// # Errors
    /// [`ControlError::NoAnswer`] or [`ControlError::TooLarge`].
    pub fn call(&self, call: &Call<'_>) -> Result<Answer, ControlError> {
        self.runtime.block_on(async {
            let response = self.request(call).send().await;
            read(call, response.map_err(|error| no_answer(call, &error))?).await
        })
    }

    /// Makes a call that must answer with one of the 2xx statuses.
    ///
    /// # Errors
    /// [`ControlError::NoAnswer`] or [`ControlError::Status`].
    pub fn expect_ok(&self, call: &Call<'_>) -> Result<String, ControlError> {
        let Answer { status, body } = self.call(call)?;
        if (200..300).contains(&status) {
            return Ok(body);
        }
        let body = body.chars().take(200).collect();
        Err(ControlError::Status { url: call.url.clone(), status, body })
    }

    /// Makes a call that must answer with JSON.
    ///
    /// # Errors
    /// [`ControlError`].
    pub fn json(&self, call: &Call<'_>) -> Result<Value, ControlError> {
        let body = self.expect_ok(call)?;
        serde_json::from_str(&body).map_err(|error| ControlError::Content {
            url: call.url.clone(),
            why: format!("the answer is not JSON ({error})"),
        })
    }

    fn request(&self, call: &Call<'_>) -> reqwest::RequestBuilder {
        let request = self
            .client
            .request(call.method.clone(), call.url.as_str())
            .timeout(TIMEOUT + call.patience);
        let request = match call.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        match &call.body {
            Some(body) => request.json(body),
            None => request,
        }
    }
}

async fn read(call: &Call<'_>, mut response: Response) -> Result<Answer, ControlError> {
    let limit = call.limit.unwrap_or(MAX_BODY_BYTES);
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| no_answer(call, &error))? {
        if body.len() + piece.len() > limit {
            return Err(ControlError::TooLarge { url: call.url.clone(), limit });
        }
        body.extend_from_slice(&piece);
    }
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok(Answer { status: response.status().as_u16(), body })
}

fn no_answer(call: &Call<'_>, error: &reqwest::Error) -> ControlError {
    ControlError::NoAnswer { url: call.url.clone(), why: root_cause(error) }
}

/// reqwest's own message repeats the URL; the innermost cause is what helps.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
