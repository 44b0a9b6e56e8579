//! Digests of a prompt's prefixes, taken while its bytes pass.

use sha2::{Digest as _, Sha256};

use super::scan::{Found, PromptScanner};

/// Lengths of the prefixes, in bytes of the prompt's value.
pub const PREFIX_SIZES: [u32; 4] = [1 << 10, 4 << 10, 16 << 10, 64 << 10];

/// Where the hashing of a prompt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptEnd {
    /// At the prompt's own end: longer prefixes do not exist.
    Whole,
    /// At the longest prefix: the prompt may go on.
    Longest,
    /// At bytes that were not copied, were lost, or did not come: longer prefixes are not known.
    Cut,
    /// The body holds no prompt.
    Absent,
}

/// What is left of a prompt: digests without a key, which stay in this process.
#[derive(Clone, PartialEq, Eq)]
pub struct Prefixes {
    /// SHA-256 of each prefix that was seen whole, shortest first.
    pub(super) digests: Vec<[u8; 32]>,
    /// Bytes of the prompt that were hashed.
    pub bytes: u32,
    /// Why no more were.
    pub end: PromptEnd,
}

impl Prefixes {
    /// Nothing of a prompt was seen.
    pub const UNSEEN: Self = Self { digests: Vec::new(), bytes: 0, end: PromptEnd::Cut };
}

impl std::fmt::Debug for Prefixes {
    /// Digests without a key can be tried against guessed prompts: they are never printed.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Prefixes")
            .field("digests", &self.digests.len())
            .field("bytes", &self.bytes)
            .field("end", &self.end)
            .finish()
    }
}

/// Reads one request body. Its memory does not grow with the body.
#[derive(Clone)]
pub struct PromptHasher {
    scanner: PromptScanner,
    hash: Sha256,
    prefixes: Prefixes,
    /// Nothing more is looked at.
    done: bool,
}

impl std::fmt::Debug for PromptHasher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.prefixes.fmt(formatter)
    }
}

impl Default for PromptHasher {
    fn default() -> Self {
        Self::new()
    }
}

impl PromptHasher {
    /// Before a body's first byte.
    #[must_use]
    pub fn new() -> Self {
        Self {
            scanner: PromptScanner::new(),
            hash: Sha256::new(),
            prefixes: Prefixes::UNSEEN,
            done: false,
        }
    }

    /// Takes the body's next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.done {
            return;
        }
        let Self { scanner, hash, prefixes, .. } = self;
        scanner.feed(bytes, &mut |prompt| take(hash, prefixes, prompt));
        match scanner.found() {
            _ if prefixes.digests.len() == PREFIX_SIZES.len() => self.end(PromptEnd::Longest),
            Found::Whole => self.end(PromptEnd::Whole),
            Found::Absent => self.end(PromptEnd::Absent),
            Found::More => {}
        }
    }

    /// The next bytes of the body are not known: what follows can't be placed.
    pub fn lose(&mut self) {
        if !self.done {
            self.end(PromptEnd::Cut);
        }
    }

    /// Bytes of the connection were seen twice with other content: nothing that was hashed counts.
    pub fn doubt(&mut self) {
        self.prefixes = Prefixes::UNSEEN;
        self.done = true;
    }

    fn end(&mut self, end: PromptEnd) {
        self.done = true;
        self.prefixes.end = end;
    }

    /// The same, of a body that was seen to its end: one without a byte of a prompt has none.
    #[must_use]
    pub fn finish_whole(mut self) -> Prefixes {
        if !self.done && self.prefixes.bytes == 0 {
            self.end(PromptEnd::Absent);
        }
        self.finish()
    }

    /// What is left of the prompt. Where its end did not come it was cut.
    #[must_use]
    pub fn finish(self) -> Prefixes {
        self.prefixes
    }
}

/// Hashes bytes of the prompt, and takes a digest at each length where one is due.
fn take(hash: &mut Sha256, prefixes: &mut Prefixes, mut bytes: &[u8]) {
    while let Some(size) = PREFIX_SIZES.get(prefixes.digests.len()) {
        let missing = (size - prefixes.bytes) as usize;
        let (now, rest) = bytes.split_at(missing.min(bytes.len()));
        hash.update(now);
        if now.len() < missing {
            // Less than the largest size.
            prefixes.bytes += u32::try_from(now.len()).unwrap_or(0);
            return;
        }
        prefixes.bytes = *size;
        prefixes.digests.push(hash.clone().finalize().into());
        bytes = rest;
    }
}
