//! Consistent hashing, plain and with bounded load.
//!
//! Bounded load (Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with Bounded Loads", SODA 2018): an
//! endpoint takes a request only below ceil(factor x (requests in flight + 1) / endpoints); a full one is
//! passed over along the ring. LoxiLB does not apply the bound to a key made of the prompt's prefix, and
//! then hashes plainly; [`PolicyConfig::bound_prefix_keys`] chooses.

use super::ring::{Point, Ring, point};
use super::{Choice, EndpointLoad, Lookup, Policy, Prompt, RequestView};
use crate::blocks::BlockHash;
use crate::config::{Algorithm, HashKey, PolicyConfig};

/// Takes the first usable endpoint after the request's key on the ring.
#[derive(Debug)]
pub struct HashRing {
    ring: Ring,
    key: HashKey,
    blocks: usize,
    bound: Option<Bound>,
}

#[derive(Clone, Copy, Debug)]
struct Bound {
    percent: u64,
    prefix_keys: bool,
}

/// Where a request lies on the ring, and whether its prompt says so.
struct Key {
    point: Point,
    of_prefix: bool,
}

impl HashRing {
    /// The ring of `endpoints` endpoints, with the bound where `config` asks for it.
    #[must_use]
    pub fn new(config: &PolicyConfig, endpoints: usize) -> Self {
        let bound =
            Bound { percent: config.load_factor_percent, prefix_keys: config.bound_prefix_keys };
        Self {
            ring: Ring::new(endpoints),
            key: config.hash_key,
            blocks: config.hash_blocks,
            bound: (config.algorithm == Algorithm::BoundedLoadHash).then_some(bound),
        }
    }

    /// By prefix, else by conversation, else by the client's address.
    fn key(&self, request: RequestView<'_>) -> Key {
        let prefix = match request.prompt {
            Prompt::Blocks(blocks) if self.key == HashKey::Prefix => self.prefix(blocks),
            _ => None,
        };
        if let Some(block) = prefix {
            return Key { point: point(&block.to_bytes()), of_prefix: true };
        }
        let session = request.session.filter(|_| self.key != HashKey::Source);
        let by_source = || point(request.source.to_string().as_bytes());
        Key { point: session.map_or_else(by_source, |s| point(s.as_bytes())), of_prefix: false }
    }

    /// The chain hash of the last of the leading blocks stands for all of them.
    fn prefix(&self, blocks: &[BlockHash]) -> Option<BlockHash> {
        blocks.get(..self.blocks.min(blocks.len())).and_then(<[_]>::last).copied()
    }
}

impl Bound {
    /// Requests that one endpoint may have in flight, counting the one to be placed.
    fn most(self, endpoints: &[EndpointLoad]) -> u64 {
        let usable = endpoints.iter().filter(|e| e.usable);
        let (count, in_flight) = usable.fold((0_u64, 0_u64), |(count, sum), e| {
            (count + 1, sum.saturating_add(wide(e.in_flight)))
        });
        let share = self.percent.saturating_mul(in_flight.saturating_add(1));
        share.div_ceil(count.max(1).saturating_mul(100))
    }
}

impl Policy for HashRing {
    fn choose(&mut self, request: RequestView<'_>, endpoints: &[EndpointLoad]) -> Option<Choice> {
        let key = self.key(request);
        let bound = self.bound.filter(|bound| bound.prefix_keys || !key.of_prefix);
        let most = bound.map_or(u64::MAX, |bound| bound.most(endpoints));
        let room =
            |i: &usize| endpoints.get(*i).is_some_and(|e| e.usable && wide(e.in_flight) < most);
        let endpoint = self.ring.after(key.point).find(room)?;
        Some(Choice { endpoint, lookup: Lookup::NotAsked })
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
