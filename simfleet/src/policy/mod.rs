//! Routing policies: one file per algorithm, without I/O.

mod cache_aware;
mod hash_ring;
mod least_connections;
mod ring;
mod round_robin;

use std::net::{IpAddr, Ipv4Addr};

use crate::blocks::BlockHash;
use crate::config::{Algorithm, PolicyConfig};

pub use cache_aware::CacheAware;
pub use hash_ring::HashRing;
pub use least_connections::LeastConnections;
pub use round_robin::RoundRobin;

/// What a policy may know of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointLoad {
    /// Requests that the gateway has sent there and that have not ended.
    pub in_flight: usize,
    /// False while it is taken to be down, or was tried for this request before.
    pub usable: bool,
}

/// What a policy may know of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestView<'a> {
    /// Its prompt.
    pub prompt: Prompt<'a>,
    /// The conversation that its header fields name, if any.
    pub session: Option<&'a str>,
    /// The client's address.
    pub source: IpAddr,
}

impl<'a> From<Prompt<'a>> for RequestView<'a> {
    /// A request of this prompt, of no conversation and from the loopback address.
    fn from(prompt: Prompt<'a>) -> Self {
        Self { prompt, session: None, source: IpAddr::V4(Ipv4Addr::LOCALHOST) }
    }
}

/// What a policy may know of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt<'a> {
    /// Not a completion request.
    None,
    /// A completion request whose body was not inspected (too large, chunked, not readable).
    Unread,
    /// Chain hashes of the prompt's full blocks.
    Blocks(&'a [BlockHash]),
}

/// An endpoint, and how the prefix index had a part in choosing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index of the endpoint.
    pub endpoint: usize,
    /// Whether the prefix index was asked, and what came of it.
    pub lookup: Lookup,
}

/// What came of asking the prefix index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// It was not asked.
    NotAsked,
    /// It named the endpoint.
    Hit,
    /// It did not, and the fallback chose.
    Miss(MissReason),
}

/// Why the prefix index named no endpoint, in LoxiLB's words (label `reason` of
/// `loxilb_pd_kv_tier15_miss_reason_total`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissReason {
    /// The prompt was not read.
    TextEmpty,
    /// The prompt has no full block.
    Hashes,
    /// No endpoint is known to hold its first block.
    NoWorker,
    /// Fewer leading blocks matched than must.
    Shallow,
    /// The best match is too loaded.
    Excluded,
}

impl MissReason {
    /// The label's value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TextEmpty => "text_empty",
            Self::Hashes => "hashes",
            Self::NoWorker => "no_worker",
            Self::Shallow => "shallow",
            Self::Excluded => "excluded",
        }
    }
}

/// Chooses an endpoint for each request.
pub trait Policy: Send {
    /// An endpoint that is usable, or `None` when there is none.
    fn choose(&mut self, request: RequestView<'_>, endpoints: &[EndpointLoad]) -> Option<Choice>;

    /// Blocks remembered per endpoint, by policies that remember any.
    fn index_blocks(&self) -> Vec<usize> {
        Vec::new()
    }
}

/// The policy that `config` describes. Its name plays no part.
#[must_use]
pub fn build(config: &PolicyConfig, endpoints: usize) -> Box<dyn Policy> {
    match config.algorithm {
        _ if config.silent_fallback => Box::new(RoundRobin::falling_back()),
        Algorithm::RoundRobin => Box::new(RoundRobin::new()),
        Algorithm::LeastConnections => Box::new(LeastConnections::default()),
        Algorithm::ConsistentHash | Algorithm::BoundedLoadHash => {
            Box::new(HashRing::new(config, endpoints))
        }
        Algorithm::CacheAware => Box::new(CacheAware::new(config, endpoints)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Choice, EndpointLoad, Lookup, MissReason, Policy, Prompt, build};
    use crate::blocks::{BlockHash, Tokenizer};
    use crate::config::{Algorithm, PolicyConfig};

    fn idle(n: usize) -> Vec<EndpointLoad> {
        vec![EndpointLoad { in_flight: 0, usable: true }; n]
    }

    fn blocks(text: &str) -> Vec<BlockHash> {
        Tokenizer { bytes_per_token: 1, block_tokens: 2 }.blocks(text.as_bytes())
    }

    fn policy(algorithm: Algorithm) -> Box<dyn Policy> {
        build(&PolicyConfig::new(algorithm), 3)
    }

    #[test]
    fn round_robin_takes_turns_and_skips_what_is_down() {
        let mut p = policy(Algorithm::RoundRobin);
        let mut loads = idle(3);
        let mut next = |l: &[EndpointLoad]| p.choose(Prompt::None.into(), l).map(|c| c.endpoint);
        assert_eq!([next(&loads), next(&loads), next(&loads)], [Some(0), Some(1), Some(2)]);
        loads[0].usable = false;
        assert_eq!([next(&loads), next(&loads), next(&loads)], [Some(1), Some(2), Some(1)]);
        loads.iter_mut().for_each(|l| l.usable = false);
        assert_eq!(next(&loads), None);
    }

    #[test]
    fn least_connections_takes_the_idlest() {
        let mut loads = idle(3);
        loads[0].in_flight = 2;
        loads[1].in_flight = 1;
        loads[2].in_flight = 2;
        let got = policy(Algorithm::LeastConnections).choose(Prompt::None.into(), &loads);
        assert_eq!(got, Some(Choice { endpoint: 1, lookup: Lookup::NotAsked }));
    }

    #[test]
    fn cache_aware_returns_to_the_longest_prefix_until_that_is_overloaded() {
        let mut p = policy(Algorithm::CacheAware);
        let (short, long) = (blocks("aabb"), blocks("aabbccdd"));
        let mut loads = idle(3);
        let first = p.choose(Prompt::Blocks(&short).into(), &loads).unwrap();
        assert_eq!(first.lookup, Lookup::Miss(MissReason::NoWorker));
        let second = p.choose(Prompt::Blocks(&long).into(), &loads).unwrap();
        assert_eq!(second, Choice { endpoint: first.endpoint, lookup: Lookup::Hit });
        loads[first.endpoint].in_flight = 3;
        assert_eq!(p.choose(Prompt::Blocks(&long).into(), &loads).unwrap().lookup, Lookup::Hit);
        loads[first.endpoint].in_flight = 4;
        let third = p.choose(Prompt::Blocks(&long).into(), &loads).unwrap();
        assert_ne!(third.endpoint, first.endpoint);
        assert_eq!(third.lookup, Lookup::Miss(MissReason::Excluded));
    }

    #[test]
    fn cache_aware_says_why_it_did_not_look_up() {
        let mut p = policy(Algorithm::CacheAware);
        let mut lookup = |prompt: Prompt<'_>| p.choose(prompt.into(), &idle(3)).unwrap().lookup;
        assert_eq!(lookup(Prompt::None), Lookup::NotAsked);
        assert_eq!(lookup(Prompt::Unread), Lookup::Miss(MissReason::TextEmpty));
        assert_eq!(lookup(Prompt::Blocks(&[])), Lookup::Miss(MissReason::Hashes));
    }

    #[test]
    fn a_silent_fallback_takes_turns_and_reports_a_miss_for_every_lookup() {
        let config =
            PolicyConfig { silent_fallback: true, ..PolicyConfig::new(Algorithm::CacheAware) };
        let mut p = build(&config, 3);
        let same = blocks("aabb");
        let got: Vec<_> =
            (0..3).map(|_| p.choose(Prompt::Blocks(&same).into(), &idle(3)).unwrap()).collect();
        assert_eq!(got.iter().map(|c| c.endpoint).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(got.iter().all(|c| c.lookup == Lookup::Miss(MissReason::NoWorker)));
    }
}
