//! A bound on log lines of one kind: whoever can cause a line can cause a million.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};

/// Lines per period; a kind of line is one place in the source.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Length of a period.
    pub period: Duration,
    /// Lines of one kind in a period, at the levels `info` and above.
    pub lines: u64,
    /// Lines of other crates, which all have one kind per level: the kernel programs' own log.
    pub forwarded: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { period: Duration::from_secs(10), lines: 20, forwarded: 2_000 }
    }
}

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is written; so many of its kind were left out before it.
    Write {
        /// Lines left out in the period before.
        left_out: u64,
    },
    /// It is left out.
    LeaveOut,
}

/// Lines of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    since: Instant,
    count: u64,
}

impl Kind {
    /// None yet.
    #[must_use]
    pub const fn new(now: Instant) -> Self {
        Self { since: now, count: 0 }
    }

    /// Counts a line that comes `now`.
    pub fn count(&mut self, now: Instant, period: Duration, most: u64) -> Verdict {
        let mut left_out = 0;
        if now.saturating_duration_since(self.since) >= period {
            left_out = self.count.saturating_sub(most);
            *self = Self::new(now);
        }
        self.count += 1;
        if self.count <= most { Verdict::Write { left_out } } else { Verdict::LeaveOut }
    }
}

/// Leaves out lines beyond the limits, and says how many when the next of their kind is written.
pub struct RateLimit<T> {
    limits: Limits,
    kinds: Mutex<HashMap<Identifier, Kind>>,
    tell: T,
    now: fn() -> Instant,
}

impl<T: Fn(&str) -> io::Result<()>> RateLimit<T> {
    /// Tells of lines left out by `tell`.
    pub fn new(limits: Limits, tell: T) -> Self {
        Self { limits, kinds: Mutex::default(), tell, now: Instant::now }
    }

    /// Goes by another clock.
    #[must_use]
    pub fn with_clock(self, now: fn() -> Instant) -> Self {
        Self { now, ..self }
    }

    /// `None` for what is asked for by name: `debug` and `trace` are never on by themselves.
    fn most(&self, metadata: &Metadata<'_>) -> Option<u64> {
        // The bridge from the crate `log` gives its events this target.
        if metadata.target() == "log" {
            return Some(self.limits.forwarded);
        }
        (*metadata.level() <= Level::INFO).then_some(self.limits.lines)
    }

    fn admit(&self, metadata: &Metadata<'_>, now: Instant) -> bool {
        let Some(most) = self.most(metadata) else { return true };
        let verdict = {
            let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
            let kind = kinds.entry(metadata.callsite()).or_insert_with(|| Kind::new(now));
            kind.count(now, self.limits.period, most)
        };
        if let Verdict::Write { left_out: left_out @ 1.. } = verdict {
            let seconds = self.limits.period.as_secs();
            let target = metadata.target();
            // A log that can't be written has nobody to tell.
            let _ = (self.tell)(&format!(
                "{target}: {left_out} lines like the next were left out: more than {most} in \
                 {seconds} s"
            ));
        }
        matches!(verdict, Verdict::Write { .. })
    }
}

impl<S: Subscriber, T: Fn(&str) -> io::Result<()> + 'static> Filter<S> for RateLimit<T> {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        self.admit(event.metadata(), (self.now)())
    }
}
