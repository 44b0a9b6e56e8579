//! Clocks: CLOCK_MONOTONIC, and how kernel stamps in CLOCK_REALTIME are brought to it.

mod realtime;

pub use realtime::{RealtimeMap, STEP_NS, Triple, tightest};

use nix::time::{ClockId, clock_gettime};
use protocol::Nanos;

/// Reads CLOCK_MONOTONIC and, for the mapping of kernel stamps, CLOCK_REALTIME.
pub trait Clock: Send + Sync {
    /// CLOCK_MONOTONIC.
    fn now(&self) -> Nanos;
    /// CLOCK_REALTIME, nanoseconds since 1970.
    fn realtime(&self) -> u64;
}

/// The host's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Nanos {
        Nanos::new(read(ClockId::CLOCK_MONOTONIC))
    }

    fn realtime(&self) -> u64 {
        read(ClockId::CLOCK_REALTIME)
    }
}

/// These two clocks exist on every Linux: the call cannot fail, and 0 would be seen at once.
fn read(id: ClockId) -> u64 {
    let nanoseconds = |time: nix::sys::time::TimeSpec| {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
        seconds * 1_000_000_000 + u64::try_from(time.tv_nsec()).unwrap_or(0)
    };
    clock_gettime(id).map_or(0, nanoseconds)
}
