//! The clock that kernel stamps are of.

use protocol::Nanos;

/// Where "now" comes from; tests bring their own.
pub trait Clock: Send + Sync {
    /// Now, CLOCK_MONOTONIC.
    fn now(&self) -> Nanos;
}

/// The host's CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

impl Clock for Monotonic {
    fn now(&self) -> Nanos {
        use nix::time::{ClockId, clock_gettime};
        // The call cannot fail for this clock: clock_gettime(2) names only unknown clocks.
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
        let (seconds, nanos) = now.map_or((0, 0), |now| (now.tv_sec(), now.tv_nsec()));
        let seconds = u64::try_from(seconds).unwrap_or(0);
        Nanos::new(seconds * 1_000_000_000 + u64::try_from(nanos).unwrap_or(0))
    }
}
