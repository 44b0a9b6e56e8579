//! The endpoint that is predicted to hold the longest prefix, bounded by load.
//!
//! The prediction is learned from what was routed where: per endpoint, the least recently used blocks.

use super::least_connections::LeastConnections;
use super::{Choice, EndpointLoad, Lookup, MissReason, Policy, Prompt, RequestView};
use crate::blocks::BlockHash;
use crate::cache::PrefixCache;
use crate::config::PolicyConfig;

/// Follows the longest predicted prefix; without one, or when that endpoint is too loaded, takes the
/// least loaded endpoint.
#[derive(Debug)]
pub struct CacheAware {
    index: Vec<PrefixCache>,
    fallback: LeastConnections,
    min_match_blocks: usize,
    balance_abs_threshold: usize,
}

impl CacheAware {
    /// An empty index for `endpoints` endpoints.
    #[must_use]
    pub fn new(config: &PolicyConfig, endpoints: usize) -> Self {
        Self {
            index: (0..endpoints).map(|_| PrefixCache::new(config.index_blocks)).collect(),
            fallback: LeastConnections::default(),
            min_match_blocks: config.min_match_blocks.max(1),
            balance_abs_threshold: config.balance_abs_threshold,
        }
    }

    /// The endpoint with the longest predicted prefix, the less loaded one of two equals.
    fn best(&self, blocks: &[BlockHash], endpoints: &[EndpointLoad]) -> Result<usize, MissReason> {
        if blocks.is_empty() {
            return Err(MissReason::Hashes);
        }
        let usable = || endpoints.iter().enumerate().filter(|(_, e)| e.usable);
        let depth = |i: usize| self.index.get(i).map_or(0, |c| c.leading_hits(blocks));
        let ranked = usable().map(|(i, e)| (depth(i), e.in_flight, i));
        let best = ranked.max_by_key(|(depth, load, i)| {
            (*depth, std::cmp::Reverse(*load), std::cmp::Reverse(*i))
        });
        let (depth, load, endpoint) = best.ok_or(MissReason::NoWorker)?;
        let least = usable().map(|(_, e)| e.in_flight).min().unwrap_or(0);
        match depth {
            0 => Err(MissReason::NoWorker),
            d if d < self.min_match_blocks => Err(MissReason::Shallow),
            _ if load > least.saturating_add(self.balance_abs_threshold) => {
                Err(MissReason::Excluded)
            }
            _ => Ok(endpoint),
        }
    }

    fn learn(&mut self, endpoint: usize, blocks: &[BlockHash]) {
        if let Some(index) = self.index.get_mut(endpoint) {
            index.use_all(blocks);
        }
    }
}

impl Policy for CacheAware {
    fn choose(&mut self, request: RequestView<'_>, endpoints: &[EndpointLoad]) -> Option<Choice> {
        let (blocks, found) = match request.prompt {
            Prompt::None => {
                let endpoint = self.fallback.pick(endpoints)?;
                return Some(Choice { endpoint, lookup: Lookup::NotAsked });
            }
            Prompt::Unread => (&[][..], Err(MissReason::TextEmpty)),
            Prompt::Blocks(blocks) => (blocks, self.best(blocks, endpoints)),
        };
        let choice = match found {
            Ok(endpoint) => Choice { endpoint, lookup: Lookup::Hit },
            Err(reason) => {
                let endpoint = self.fallback.pick(endpoints)?;
                Choice { endpoint, lookup: Lookup::Miss(reason) }
            }
        };
        self.learn(choice.endpoint, blocks);
        Some(choice)
    }

    fn index_blocks(&self) -> Vec<usize> {
        self.index.iter().map(PrefixCache::len).collect()
    }
}
