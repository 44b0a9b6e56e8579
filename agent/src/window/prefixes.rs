//! Windows that hash prefixes of prompts.

use std::sync::Arc;

use super::book::{WindowError, Windows};
use crate::flow::FinishedExchange;
use crate::prompt::{PrefixRow, Salt};

/// Hashes of one window, keyed with its own salt.
#[derive(Debug)]
pub(super) struct PrefixBook {
    salt: Salt,
    rows: Vec<Arc<str>>,
}

impl Windows {
    /// Has the window with number `key` hash the prompts of its requests.
    pub fn hash_prompts(&mut self, key: u64, salt: Salt) {
        if let Some(window) = self.windows.get_mut(&key) {
            window.prefixes = Some(PrefixBook { salt, rows: Vec::new() });
        }
    }

    /// Whether any window does that and takes requests still.
    #[must_use]
    pub fn reads_prompts(&self) -> bool {
        self.windows.values().any(|window| window.prefixes.is_some() && !window.finished)
    }

    /// Gives the hashes of a request to every window that it belongs to and that wants them.
    pub fn add_prefixes(&mut self, exchange: &FinishedExchange) {
        let limit = self.most_bytes();
        let takes = self.windows.values_mut().filter(|it| !it.finished && it.covers(exchange.seen));
        for window in takes {
            let Some(book) = &mut window.prefixes else { continue };
            // Numbers and digests: nothing in a row can fail to be written.
            let row = serde_json::to_string(&PrefixRow::new(exchange, &book.salt));
            let row = row.unwrap_or_default();
            if self.bytes + row.len() > limit {
                window.limited = true;
                continue;
            }
            self.bytes += row.len();
            window.bytes += row.len();
            book.rows.push(Arc::from(row));
        }
    }

    /// Lines of `prefixes.jsonl` of the window with number `key`.
    ///
    /// # Errors
    /// [`WindowError::NoPrefixes`] when it was opened without a salt.
    pub fn prefixes(&self, key: u64) -> Result<Vec<Arc<str>>, WindowError> {
        let window = self.windows.get(&key).ok_or(WindowError::Unknown)?;
        let book = window.prefixes.as_ref().ok_or(WindowError::NoPrefixes)?;
        Ok(book.rows.clone())
    }
}
