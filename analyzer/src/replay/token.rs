//! A bearer token from a file; never printed.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A token file that cannot be used. No message shows its content.
#[derive(Debug, Error)]
pub enum TokenError {
    /// Not readable.
    #[error("{path}: cannot read the token ({cause}): check the path and its permissions", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// Empty, or with characters that a header field cannot carry.
    #[error("{path}: not one token of visible ASCII characters: write the token alone on one line", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
    },
}

/// A bearer token.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(String);

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(..)")
    }
}

impl BearerToken {
    /// Reads a file that holds the token, blanks around it ignored.
    ///
    /// # Errors
    /// Every [`TokenError`].
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| TokenError::Io { path: path.to_owned(), cause })?;
        let token = text.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Content { path: path.to_owned() });
        }
        Ok(Self(token.to_owned()))
    }

    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &str) -> Result<BearerToken, TokenError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        std::fs::write(&path, content).unwrap();
        BearerToken::read(&path)
    }

    #[test]
    fn a_token_is_trimmed_and_never_shown() {
        let token = read("  abc.DEF-1\n").unwrap();
        assert_eq!(token.expose(), "abc.DEF-1");
        assert_eq!(format!("{token:?}"), "BearerToken(..)");
    }

    #[test]
    fn what_a_field_cannot_carry_is_refused_without_showing_it() {
        for content in ["", "\n", "abc def", "abc\r\nX-Evil: 1", "caf\u{e9}"] {
            let message = read(content).unwrap_err().to_string();
            assert!(
                message.contains("alone on one line") && !message.contains("Evil"),
                "{message}"
            );
        }
    }
}
