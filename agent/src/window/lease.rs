//! How long a window is kept for a client that does not call any more.

use std::collections::BTreeSet;

use protocol::Nanos;

/// Expired windows whose ids still answer that they expired.
const REMEMBERED: usize = 1024;

/// Time for which a window is kept after the last call about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lease {
    seconds: u64,
}

/// A lease that no window can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("lease_s is {0}, not between 1 and {most}", most = Lease::LONGEST.seconds)]
pub struct LeaseError(pub u64);

impl Lease {
    /// Of a window that is open, unless its client asks for another.
    pub const OPEN: Self = Self { seconds: 3600 };
    /// Of a window that was closed, unless its client asks for another.
    pub const CLOSED: Self = Self { seconds: 600 };
    /// A week.
    pub const LONGEST: Self = Self { seconds: 604_800 };

    /// A lease of so many seconds.
    ///
    /// # Errors
    /// For none, and beyond [`Lease::LONGEST`].
    pub fn from_seconds(seconds: u64) -> Result<Self, LeaseError> {
        if !(1..=Self::LONGEST.seconds).contains(&seconds) {
            return Err(LeaseError(seconds));
        }
        Ok(Self { seconds })
    }

    /// Its length in seconds.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.seconds
    }

    /// When it ends if the last call is made `now`.
    #[must_use]
    pub fn end(self, now: Nanos) -> Nanos {
        Nanos::new(now.get().saturating_add(self.seconds.saturating_mul(1_000_000_000)))
    }
}

/// Windows that were given up because nobody called about them.
#[derive(Clone, Debug, Default)]
pub(super) struct Expired {
    recent: BTreeSet<u64>,
    count: u64,
}

impl Expired {
    pub(super) fn add(&mut self, key: u64) {
        self.count += 1;
        self.recent.insert(key);
        if self.recent.len() > REMEMBERED {
            self.recent.pop_first();
        }
    }

    pub(super) fn contains(&self, key: u64) -> bool {
        self.recent.contains(&key)
    }

    /// All of them, since the agent started.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}
