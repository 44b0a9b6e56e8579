//! The wire form of a prompt's hashes: one line of `prefixes.jsonl` (`docs/formats.md`).

use std::net::SocketAddr;

use serde::Serialize;

use super::hasher::{PREFIX_SIZES, Prefixes, PromptEnd};
use super::salt::Salt;
use crate::flow::FinishedExchange;

/// Name and version of the form.
pub const PREFIX_SCHEMA: &str = "goodput.prefix/1";

/// One line of `prefixes.jsonl`; keys are written in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PrefixRow {
    schema: &'static str,
    endpoint: SocketAddr,
    connection: u64,
    request_index: u64,
    prompt_bytes: u32,
    prompt_end: PromptEnd,
    prefixes: [Option<String>; PREFIX_SIZES.len()],
}

impl PrefixRow {
    /// The row of `exchange`, keyed with `salt`.
    #[must_use]
    pub fn new(exchange: &FinishedExchange, salt: &Salt) -> Self {
        let unseen = Prefixes::UNSEEN;
        let prompt = exchange.prompt.as_ref().unwrap_or(&unseen);
        let keyed = |at: usize| prompt.digests.get(at).map(|digest| salt.key(digest));
        Self {
            schema: PREFIX_SCHEMA,
            endpoint: exchange.endpoint,
            connection: exchange.connection.0,
            request_index: exchange.index,
            prompt_bytes: prompt.bytes,
            prompt_end: prompt.end,
            prefixes: std::array::from_fn(keyed),
        }
    }
}
