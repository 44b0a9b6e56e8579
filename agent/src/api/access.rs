//! What calls share: the token, which a reload may change, and counts for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use super::Token;

/// The token in force, and what is counted outside the worker.
#[derive(Debug, Default)]
pub struct Access {
    token: RwLock<Option<Token>>,
    reloads_applied: AtomicU64,
    reloads_refused: AtomicU64,
    connections_refused: AtomicU64,
}

impl Access {
    /// With a token, every call needs it.
    #[must_use]
    pub fn new(token: Option<Token>) -> Self {
        Self { token: RwLock::new(token), ..Self::default() }
    }

    /// The token in force.
    #[must_use]
    pub fn token(&self) -> Option<Token> {
        self.token.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on calls need this token.
    pub fn set_token(&self, token: Option<Token>) {
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = token;
    }

    /// Counts a reload of the configuration.
    pub fn count_reload(&self, applied: bool) {
        let count = if applied { &self.reloads_applied } else { &self.reloads_refused };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_refused_connection(&self) {
        self.connections_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Reloads applied, reloads refused, connections refused.
    pub(super) fn counts(&self) -> [u64; 3] {
        [&self.reloads_applied, &self.reloads_refused, &self.connections_refused]
            .map(|count| count.load(Ordering::Relaxed))
    }
}
