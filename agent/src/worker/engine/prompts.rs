//! Prompts are read while a window asks for it, and no longer: both the hashing and the copying cost time.

use super::Engine;

/// Bytes copied of each request while prompts are read, at least: the longest prefix that is hashed, and
/// 8 KiB for the head and what stands before the prompt.
const READING_BYTES: u32 = 72 * 1024;

/// How many bytes of each request are copied.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestBytes {
    /// When nobody reads prompts; `None` where the source's own is kept.
    rest: Option<u32>,
    /// Prompts are read now.
    reading: bool,
}

impl Engine {
    /// Lets the engine have the source copy more than these `bytes` of each request while a window hashes
    /// prompts. To be called right after [`Engine::new`].
    #[must_use]
    pub fn copying(mut self, bytes: u32) -> Self {
        self.request_bytes.rest = Some(bytes);
        self
    }

    /// Follows the windows: prompts are read from their opening to the end of the last.
    pub(super) fn follow_prompts(&mut self, reading: bool) {
        self.flows.read_prompts(reading);
        if reading == self.request_bytes.reading {
            return;
        }
        self.request_bytes.reading = reading;
        let Some(rest) = self.request_bytes.rest else { return };
        let bytes = if reading { rest.max(READING_BYTES) } else { rest };
        if let Err(error) = self.source.set_request_bytes(bytes) {
            // Prefixes that were not copied are told as not seen.
            tracing::error!(%error, "the request budget could not be changed");
        }
    }
}
