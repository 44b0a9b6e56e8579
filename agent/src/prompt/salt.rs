//! The secret that a window's hashes are keyed with.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// Bytes of a salt.
const SALT_LEN: usize = 16;
/// Bytes of a hash that are told: 128 bits, far beyond any collision by chance.
const TOLD: usize = 16;

/// Text that is no salt. It does not repeat the text, which may be a secret with a typing error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SaltError {
    /// Of another form.
    #[error("a salt is 32 hexadecimal digits")]
    Form,
    /// The system gave no random bytes.
    #[error("the system gives no random bytes")]
    NoRandom,
}

/// A secret key of 128 bits. It is never printed and never written beside what was hashed with it: with
/// it, guessed prompts could be tried against the hashes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Salt([u8; SALT_LEN]);

impl Salt {
    /// One that nobody knows.
    ///
    /// # Errors
    /// [`SaltError::NoRandom`].
    pub fn random() -> Result<Self, SaltError> {
        let mut bytes = [0; SALT_LEN];
        getrandom::fill(&mut bytes).map_err(|_| SaltError::NoRandom)?;
        Ok(Self(bytes))
    }

    /// The keyed hash of a prefix's digest: HMAC-SHA-256 (RFC 2104), its first 128 bits as 32
    /// hexadecimal digits.
    pub(super) fn key(&self, digest: &[u8; 32]) -> String {
        // HMAC takes keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(digest);
        let told = mac.finalize().into_bytes();
        told.iter().take(TOLD).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for Salt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Salt(secret)")
    }
}

impl FromStr for Salt {
    type Err = SaltError;

    fn from_str(text: &str) -> Result<Self, SaltError> {
        let digits = text.as_bytes();
        if digits.len() != 2 * SALT_LEN || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(SaltError::Form);
        }
        let mut bytes = [0; SALT_LEN];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| SaltError::Form)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| SaltError::Form)?;
        }
        Ok(Self(bytes))
    }
}
