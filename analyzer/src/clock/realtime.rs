//! CLOCK_REALTIME stamps on the CLOCK_MONOTONIC scale.
//!
//! The kernel stamps received packets in CLOCK_REALTIME. Both clocks are slewed alike, so their offset
//! is constant but for steps, which void a run.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use protocol::Nanos;

use super::Clock;

/// An offset change above this is a step of the clock, not noise of the reading: 50 microseconds.
pub const STEP_NS: u64 = 50_000;

const TRIPLES: usize = 16;

/// One reading of CLOCK_REALTIME between two of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triple {
    /// CLOCK_MONOTONIC before.
    pub before: Nanos,
    /// CLOCK_REALTIME.
    pub real: u64,
    /// CLOCK_MONOTONIC after.
    pub after: Nanos,
}

impl Triple {
    fn width(self) -> i64 {
        self.after.since(self.before)
    }

    /// Realtime minus monotonic, taking the middle of the two monotonic readings.
    fn offset(self) -> i64 {
        let middle = self.before.get() + self.after.get().saturating_sub(self.before.get()) / 2;
        signed(self.real) - signed(middle)
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The tightest of a handful of triples: its offset is uncertain by half its width.
pub fn tightest(clock: &dyn Clock) -> Triple {
    let read = || Triple { before: clock.now(), real: clock.realtime(), after: clock.now() };
    (1..TRIPLES).map(|_| read()).fold(
        read(),
        |best, next| {
            if next.width() < best.width() { next } else { best }
        },
    )
}

/// The current offset, shared by all threads of a run.
#[derive(Debug)]
pub struct RealtimeMap {
    offset_ns: AtomicI64,
    steps: AtomicU64,
}

impl RealtimeMap {
    /// Takes the first reading.
    #[must_use]
    pub fn new(clock: &dyn Clock) -> Self {
        let offset_ns = AtomicI64::new(tightest(clock).offset());
        Self { offset_ns, steps: AtomicU64::new(0) }
    }

    /// Takes a new reading; call it every second.
    pub fn refresh(&self, clock: &dyn Clock) {
        let offset = tightest(clock).offset();
        let previous = self.offset_ns.swap(offset, Ordering::Relaxed);
        if offset.abs_diff(previous) > STEP_NS {
            self.steps.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Steps seen so far; any marks the run `CLOCK_STEP`.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// A CLOCK_REALTIME stamp as CLOCK_MONOTONIC.
    #[must_use]
    pub fn monotonic(&self, real: u64) -> Nanos {
        let offset = self.offset_ns.load(Ordering::Relaxed);
        Nanos::new(u64::try_from(signed(real) - offset).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::super::SystemClock;
    use super::*;

    /// Monotonic time advances 100 ns a reading; realtime is ahead by an offset that tests move.
    struct ModelClock {
        now: AtomicU64,
        ahead: AtomicU64,
    }

    impl Clock for ModelClock {
        fn now(&self) -> Nanos {
            Nanos::new(self.now.fetch_add(100, Ordering::Relaxed))
        }

        fn realtime(&self) -> u64 {
            self.now.fetch_add(100, Ordering::Relaxed) + self.ahead.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_stamp_maps_to_the_monotonic_instant_it_was_taken_at() {
        let clock = ModelClock { now: AtomicU64::new(5_000), ahead: AtomicU64::new(1_000_000) };
        let map = RealtimeMap::new(&clock);
        assert_eq!(map.monotonic(1_007_000), Nanos::new(7_000));
    }

    #[test]
    fn only_a_change_beyond_fifty_microseconds_is_a_step() {
        let clock = ModelClock { now: AtomicU64::new(0), ahead: AtomicU64::new(10_000_000) };
        let map = RealtimeMap::new(&clock);
        clock.ahead.fetch_add(50_000, Ordering::Relaxed);
        map.refresh(&clock);
        assert_eq!(map.steps(), 0);
        clock.ahead.fetch_sub(50_001, Ordering::Relaxed);
        map.refresh(&clock);
        assert_eq!(map.steps(), 1);
    }

    #[test]
    fn the_hosts_clocks_map_within_the_width_of_a_reading() {
        let clock = SystemClock;
        let map = RealtimeMap::new(&clock);
        let before = clock.now();
        let mapped = map.monotonic(clock.realtime());
        let after = clock.now();
        let slack = i64::try_from(STEP_NS).unwrap();
        assert!(mapped.since(before) >= -slack && after.since(mapped) >= -slack);
    }
}
