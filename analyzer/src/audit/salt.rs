//! The secret with which agents key their hashes, chosen here so that several agents share it.

use std::fmt;
use std::path::{Path, PathBuf};

/// Bytes of a salt.
const SALT_LEN: usize = 16;

/// Why there is no salt. Never repeats one.
#[derive(Debug, thiserror::Error)]
pub enum SaltError {
    /// The file can't be read.
    #[error("{path}: {cause}; name a readable file with --salt-file", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// It does not hold a salt.
    #[error("{path}: not 32 hexadecimal digits; write a salt with `openssl rand -hex 16`", path = path.display())]
    Form {
        /// The file.
        path: PathBuf,
    },
    /// The system gave no random bytes.
    #[error("the system gives no random bytes; give a salt with --salt-file")]
    NoRandom,
}

/// A secret of 128 bits as agents take it. It is told to them and to nobody else: never printed, never
/// written.
#[derive(Clone, PartialEq, Eq)]
pub struct Salt(String);

impl Salt {
    /// One that is forgotten with this process.
    ///
    /// # Errors
    /// [`SaltError::NoRandom`].
    pub fn random() -> Result<Self, SaltError> {
        let mut bytes = [0_u8; SALT_LEN];
        getrandom::fill(&mut bytes).map_err(|_| SaltError::NoRandom)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The operator's own, so that hashes of several audits can be compared.
    ///
    /// # Errors
    /// [`SaltError::Unreadable`] and [`SaltError::Form`].
    pub fn read(path: &Path) -> Result<Self, SaltError> {
        let bytes = crate::input::read_regular(path)
            .map_err(|cause| SaltError::Unreadable { path: path.to_owned(), cause })?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        if text.len() != 2 * SALT_LEN || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(SaltError::Form { path: path.to_owned() });
        }
        Ok(Self(text.to_ascii_lowercase()))
    }

    /// As it goes to an agent.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Salt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Salt(secret)")
    }
}
