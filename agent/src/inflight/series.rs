//! One level over time, made of changes that may arrive a little out of order.

use std::collections::BTreeMap;

use protocol::Nanos;

use super::WindowKey;
use super::interval::Intervals;

/// A level and the windows that watch it.
#[derive(Debug, Default)]
pub(super) struct Series {
    /// Changes that are not final yet, in order of their stamps; ties in order of arrival.
    pending: BTreeMap<(Nanos, u64), i64>,
    arrivals: u64,
    /// Everything up to here is final.
    settled: Option<Nanos>,
    level: u64,
    windows: BTreeMap<WindowKey, Intervals>,
    closed: BTreeMap<WindowKey, Intervals>,
}

impl Series {
    /// Books a change. One that comes too late is booked as soon as it can be.
    pub(super) fn change(&mut self, stamp: Nanos, change: i64) {
        let stamp = self.settled.map_or(stamp, |settled| settled.max(stamp));
        self.arrivals += 1;
        self.pending.insert((stamp, self.arrivals), change);
    }

    /// The level was higher by `by` from the beginning on.
    pub(super) fn raise(&mut self, by: u64) {
        self.level += by;
    }

    /// Makes everything up to `until` final.
    pub(super) fn settle(&mut self, until: Nanos) {
        while let Some(entry) = self.pending.first_entry() {
            let (stamp, _) = *entry.key();
            if stamp > until {
                break;
            }
            let change = entry.remove();
            self.level = after(self.level, change);
            let level = self.level;
            self.windows.values_mut().for_each(|window| window.change(stamp, level));
        }
        self.windows.values_mut().for_each(|window| window.reach(until));
        self.settled = self.settled.max(Some(until));
    }

    /// The level with everything that is known.
    pub(super) fn now(&self) -> u64 {
        self.pending.values().fold(self.level, |level, change| after(level, *change))
    }

    pub(super) fn open(&mut self, key: WindowKey, start: Nanos, interval: u64) {
        self.windows.insert(key, Intervals::new(start, interval, self.level));
    }

    /// The window counts nothing after `end`; what came before may still be booked.
    pub(super) fn bound(&mut self, key: WindowKey, end: Nanos) {
        if let Some(window) = self.windows.get_mut(&key) {
            window.bound(end);
        }
    }

    pub(super) fn close(&mut self, key: WindowKey, end: Nanos) {
        if let Some(mut window) = self.windows.remove(&key) {
            window.finish(end);
            self.closed.insert(key, window);
        }
    }

    pub(super) fn forget(&mut self, key: WindowKey) {
        self.windows.remove(&key);
        self.closed.remove(&key);
    }

    pub(super) fn intervals(&self, key: WindowKey) -> Option<&Intervals> {
        self.closed.get(&key).or_else(|| self.windows.get(&key))
    }
}

/// A level is never negative: what leaves without having come is older than the agent.
fn after(level: u64, change: i64) -> u64 {
    level.saturating_add_signed(change)
}
