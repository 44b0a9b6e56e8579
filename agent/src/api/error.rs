//! Errors of the API, each with its mend.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::prompt::SaltError;
use crate::window::{LeaseError, WindowError};

/// A call that can't be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiError {
    /// No or a wrong token.
    Unauthorized,
    /// The body can't be read.
    BadBody(String),
    /// A query can't be read.
    BadQuery(String),
    /// The body is larger than any call needs.
    LargeBody,
    /// The body did not come in time.
    SlowBody,
    /// A label is longer than is kept.
    LongLabel,
    /// A lease that no window can have.
    BadLease(LeaseError),
    /// A salt of another form. The error does not repeat it.
    BadSalt,
    /// No such path.
    UnknownPath,
    /// No such method on this path.
    WrongMethod,
    /// The call is about a window that can't serve it.
    Window(WindowError),
}

#[derive(Serialize)]
struct Body {
    error: String,
    mend: &'static str,
}

impl From<WindowError> for ApiError {
    fn from(error: WindowError) -> Self {
        Self::Window(error)
    }
}

impl ApiError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::BadBody(_)
            | Self::BadQuery(_)
            | Self::LongLabel
            | Self::BadLease(_)
            | Self::BadSalt => StatusCode::BAD_REQUEST,
            Self::LargeBody => StatusCode::PAYLOAD_TOO_LARGE,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::UnknownPath | Self::Window(WindowError::Unknown) => StatusCode::NOT_FOUND,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::Window(WindowError::Expired) => StatusCode::GONE,
            Self::Window(WindowError::Closed | WindowError::Full | WindowError::NoPrefixes) => {
                StatusCode::CONFLICT
            }
            Self::Window(WindowError::Stopping) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn body(self) -> Body {
        let (error, mend) = match self {
            Self::Unauthorized => (
                "a bearer token is required".to_owned(),
                "send Authorization: Bearer with the token that the agent's token_file holds: token_file \
                 of [[agent]] in campaign.toml for goodput, --token-file for goodput-agent top",
            ),
            Self::BadBody(error) => (error, "send the JSON object that docs/agent-api.md shows"),
            Self::BadQuery(error) => (error, "write it as docs/agent-api.md shows"),
            Self::LargeBody => (
                "the body is larger than 64 KiB".to_owned(),
                "send the JSON object that docs/agent-api.md shows",
            ),
            Self::SlowBody => (
                "the body did not come in time".to_owned(),
                "send it at once, with the Content-Length that it has",
            ),
            Self::LongLabel => {
                ("the label is longer than 256 bytes".to_owned(), "choose a shorter label")
            }
            Self::BadLease(error) => {
                (error.to_string(), "send the seconds to keep the window without a call about it")
            }
            Self::BadSalt => (
                format!("prefix_salt: {}", SaltError::Form),
                "send 128 random bits, as `openssl rand -hex 16` gives them",
            ),
            Self::UnknownPath => ("no such path".to_owned(), "docs/agent-api.md lists the calls"),
            Self::WrongMethod => {
                ("no such method here".to_owned(), "docs/agent-api.md lists the calls")
            }
            Self::Window(error) => (error.to_string(), mend(error)),
        };
        Body { error, mend }
    }
}

fn mend(error: WindowError) -> &'static str {
    match error {
        WindowError::Unknown => {
            "use a window_id that POST /v1/windows answered; deleted ones are gone"
        }
        WindowError::Expired => {
            "open another window, with a longer lease_s or a call about it now and then"
        }
        WindowError::NoPrefixes => "open a window with prefix_salt",
        WindowError::Closed => "fetch its observations, or open another window",
        WindowError::Full => {
            "delete windows that are not needed any more (DELETE /v1/windows/{id}), or wait for the \
             end of their leases"
        }
        WindowError::Stopping => "start the agent again",
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.status();
        let body = Json(self.body());
        if status == StatusCode::UNAUTHORIZED {
            return (status, [(header::WWW_AUTHENTICATE, "Bearer")], body).into_response();
        }
        (status, body).into_response()
    }
}
