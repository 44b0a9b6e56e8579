//! The bearer token.

use std::path::Path;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

use super::Access;
use super::error::ApiError;

/// A token, kept as its hash: comparing hashes tells nothing about how much of a guess was right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token([u8; 32]);

impl Token {
    /// The token `text`, blanks around it dropped; `None` when nothing is left.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(Sha256::digest(text.as_bytes()).into()))
    }

    /// Reads a token from a file.
    ///
    /// # Errors
    /// When the file can't be read or holds nothing.
    pub fn read(path: &Path) -> std::io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        Self::new(&text).ok_or_else(|| std::io::Error::other("the file holds no token"))
    }

    /// Looks at every byte, whatever the first ones are.
    fn equals(&self, other: &Self) -> bool {
        let differing = self.0.iter().zip(&other.0).fold(0, |bits, (a, b)| bits | (a ^ b));
        std::hint::black_box(differing) == 0
    }

    fn opens(&self, request: &Request) -> bool {
        let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = header.and_then(|value| value.split_once(' '));
        given.is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case("bearer")
                && Self::new(token).is_some_and(|it| it.equals(self))
        })
    }
}

/// Refuses calls without the token.
pub(super) async fn require(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    if access.token().is_none_or(|token| token.opens(&request)) {
        next.run(request).await
    } else {
        ApiError::Unauthorized.into_response()
    }
}
