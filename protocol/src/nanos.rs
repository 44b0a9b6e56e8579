//! Instants and durations as integers: latencies are scored in nanoseconds, never as floats.

use serde::{Deserialize, Serialize};

/// An instant: CLOCK_MONOTONIC nanoseconds of the host that took it.
///
/// Stamps of two hosts must never be subtracted from each other; only durations compare across hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(u64);

impl Nanos {
    /// The instant `ns` nanoseconds after the clock's zero.
    #[must_use]
    pub const fn new(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the clock's zero.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Nanoseconds from `earlier` to `self`; negative when `earlier` is in fact later.
    ///
    /// Saturates at the ends of `i64` (292 years).
    #[must_use]
    pub fn since(self, earlier: Self) -> i64 {
        let forward = i64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(i64::MAX);
        let backward = i64::try_from(earlier.0.saturating_sub(self.0)).unwrap_or(i64::MAX);
        forward - backward
    }
}
