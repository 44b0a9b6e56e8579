//! A ring of hashes: every endpoint holds many places on it, a key belongs to the place that follows it.
//!
//! With one endpoint more or less, only keys of that endpoint's places move (Karger et al., "Consistent
//! Hashing and Random Trees", STOC 1997).

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

/// Places of one endpoint, as in LoxiLB (256 virtual nodes).
const PLACES: usize = 256;

/// A place on the ring, or a key.
pub(super) type Point = u64;

/// The first 64 bits of SHA-256: where `bytes` lie on the ring.
pub(super) fn point(bytes: &[u8]) -> Point {
    let digest = Sha256::digest(bytes);
    digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Places in order, each with its endpoint's index.
#[derive(Debug)]
pub(super) struct Ring(Vec<(Point, usize)>);

impl Ring {
    /// The ring of `endpoints` endpoints. An endpoint's places depend on its index alone, so that runs on
    /// other ports route alike: place `p` of endpoint `e` is the hash of `e/p` in decimal.
    pub(super) fn new(endpoints: usize) -> Self {
        let places = |e: usize| (0..PLACES).map(move |p| (point(format!("{e}/{p}").as_bytes()), e));
        let mut all: Vec<_> = (0..endpoints).flat_map(places).collect();
        all.sort_unstable();
        Self(all)
    }

    /// Every endpoint once, in the order in which their places follow `key`.
    pub(super) fn after(&self, key: Point) -> impl Iterator<Item = usize> + '_ {
        let start = self.0.partition_point(|(place, _)| *place < key);
        let (before, behind) = self.0.split_at(start);
        let mut seen = BTreeSet::new();
        let around = behind.iter().chain(before).map(|(_, endpoint)| *endpoint);
        around.filter(move |endpoint| seen.insert(*endpoint))
    }
}
