//! A prefix cache: the least recently used blocks of fixed capacity.

use std::collections::{BTreeMap, HashMap};

use crate::blocks::BlockHash;

/// Blocks kept in order of last use; the least recently used one leaves first.
#[derive(Debug)]
pub struct PrefixCache {
    capacity: usize,
    clock: u64,
    used_at: HashMap<BlockHash, u64>,
    by_use: BTreeMap<u64, BlockHash>,
}

impl PrefixCache {
    /// An empty cache for at most `capacity` blocks; 0 keeps nothing.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity, clock: 0, used_at: HashMap::new(), by_use: BTreeMap::new() }
    }

    /// Length of the longest leading run of `blocks` that the cache holds. Does not count as a use.
    #[must_use]
    pub fn leading_hits(&self, blocks: &[BlockHash]) -> usize {
        blocks.iter().take_while(|b| self.used_at.contains_key(b)).count()
    }

    /// Marks every block of one prompt as just used, adding those that are missing.
    ///
    /// Last block first, so that a prompt's tail leaves before its head: a tail without its head
    /// could never be hit again.
    pub fn use_all(&mut self, blocks: &[BlockHash]) {
        for block in blocks.iter().rev() {
            self.use_one(*block);
        }
    }

    fn use_one(&mut self, block: BlockHash) {
        self.clock += 1;
        if let Some(before) = self.used_at.insert(block, self.clock) {
            self.by_use.remove(&before);
        }
        self.by_use.insert(self.clock, block);
        while self.by_use.len() > self.capacity {
            if let Some((_, oldest)) = self.by_use.pop_first() {
                self.used_at.remove(&oldest);
            }
        }
    }

    /// Blocks held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_use.len()
    }

    /// True when no block is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_use.is_empty()
    }

    /// Blocks that fit.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}
