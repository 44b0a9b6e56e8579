//! Salted hashes of prompts' prefixes, so that cache affinity can be audited without keeping a prompt.
//!
//! Nothing of a prompt is stored: its bytes pass through a hash function as they come, and what is
//! left are digests of its first 1, 4, 16 and 64 KiB, keyed with a window's secret salt before they
//! leave the process (`docs/audit.md`).

mod hasher;
mod row;
mod salt;
mod scan;

pub use hasher::{PREFIX_SIZES, Prefixes, PromptEnd, PromptHasher};
pub use row::{PREFIX_SCHEMA, PrefixRow};
pub use salt::{Salt, SaltError};

#[cfg(test)]
mod tests;
