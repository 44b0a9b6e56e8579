//! Time-weighted mean and peak of a level, per interval.

use protocol::Nanos;

/// Intervals kept per window and endpoint: a day of 100 ms.
const MOST: usize = 864_000;

/// One interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its start.
    pub start: Nanos,
    /// Its end.
    pub end: Nanos,
    /// Time-weighted mean of the level.
    pub mean: f64,
    /// Highest level, however short.
    pub peak: u64,
    /// Level at its end.
    pub last: u64,
}

/// The intervals of a window, as the level changes.
#[derive(Clone, Debug)]
pub struct Intervals {
    length: u64,
    start: Nanos,
    /// The level is integrated up to here.
    at: Nanos,
    level: u64,
    peak: u64,
    /// Level times nanoseconds since `start`.
    area: u128,
    /// Intervals that have ended.
    pub rows: Vec<Interval>,
    /// There were more than are kept.
    pub overflowed: bool,
    /// Nothing after it counts, once it is known.
    end: Option<Nanos>,
}

impl Intervals {
    /// Intervals of `length` nanoseconds from `start` on, at which the level is `level`.
    #[must_use]
    pub fn new(start: Nanos, length: u64, level: u64) -> Self {
        Self {
            length: length.max(1),
            start,
            at: start,
            level,
            peak: level,
            area: 0,
            rows: Vec::new(),
            overflowed: false,
            end: None,
        }
    }

    /// The window ends at `end`, though changes from before it may still come.
    pub fn bound(&mut self, end: Nanos) {
        self.end = Some(end);
    }

    /// The level is `level` from `stamp` on.
    pub fn change(&mut self, stamp: Nanos, level: u64) {
        if self.end.is_some_and(|end| stamp > end) {
            return;
        }
        if stamp <= self.start && self.rows.is_empty() {
            // Before the window, or at its very start.
            self.level = level;
            self.peak = level;
            return;
        }
        self.advance(stamp);
        self.level = level;
        self.peak = self.peak.max(level);
    }

    /// The level stays what it is until `until`, so that series without changes have intervals too.
    pub fn reach(&mut self, until: Nanos) {
        let until = self.end.map_or(until, |end| until.min(end));
        if until > self.at {
            self.advance(until);
        }
    }

    /// The window ends at `end`.
    pub fn finish(&mut self, end: Nanos) {
        self.advance(end);
        if self.at > self.start {
            self.end_interval();
        }
    }

    /// Mean over all of `rows`, weighted by their lengths.
    #[must_use]
    pub fn mean_of(rows: &[Interval]) -> f64 {
        let length = |row: &Interval| row.end.get().saturating_sub(row.start.get()) as f64;
        let span: f64 = rows.iter().map(length).sum();
        let area: f64 = rows.iter().map(|row| row.mean * length(row)).sum();
        if span > 0.0 { area / span } else { 0.0 }
    }

    fn advance(&mut self, to: Nanos) {
        loop {
            let end = Nanos::new(self.start.get().saturating_add(self.length));
            if to < end {
                self.integrate(to);
                return;
            }
            self.integrate(end);
            self.end_interval();
        }
    }

    fn integrate(&mut self, to: Nanos) {
        let span = to.get().saturating_sub(self.at.get());
        self.area += u128::from(span) * u128::from(self.level);
        self.at = self.at.max(to);
    }

    fn end_interval(&mut self) {
        let span = self.at.get() - self.start.get();
        let mean = if span == 0 { 0.0 } else { self.area as f64 / span as f64 };
        if self.rows.len() < MOST {
            let row = Interval {
                start: self.start,
                end: self.at,
                mean,
                peak: self.peak,
                last: self.level,
            };
            self.rows.push(row);
        } else {
            self.overflowed = true;
        }
        self.start = self.at;
        self.area = 0;
        self.peak = self.level;
    }
}
