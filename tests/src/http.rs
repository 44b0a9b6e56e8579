//! Control-plane calls: JSON in, JSON out.

use anyhow::Context as _;
use serde_json::Value;

/// The status and the body of an answer.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Body.
    pub body: String,
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Errors
    /// When the status is an error, or the body no JSON.
    pub fn json(&self) -> anyhow::Result<Value> {
        anyhow::ensure!(self.status < 400, "status {}: {}", self.status, self.body);
        serde_json::from_str(&self.body).with_context(|| self.body.clone())
    }
}

/// `GET url`.
///
/// # Errors
/// When no answer comes.
pub fn get(url: &str) -> anyhow::Result<Answer> {
    send(reqwest::Client::new().get(url))
}

/// `POST url` with a JSON body.
///
/// # Errors
/// When no answer comes.
pub fn post(url: &str, body: &Value) -> anyhow::Result<Answer> {
    send(reqwest::Client::new().post(url).json(body))
}

/// `DELETE url`.
///
/// # Errors
/// When no answer comes.
pub fn delete(url: &str) -> anyhow::Result<Answer> {
    send(reqwest::Client::new().delete(url))
}

fn send(request: reqwest::RequestBuilder) -> anyhow::Result<Answer> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let answer = request.send().await?;
        Ok(Answer { status: answer.status().as_u16(), body: answer.text().await? })
    })
}
