//! What a repetition offered and how late it was, from planned and dispatched instants alone: the replay writes
//! these figures into `run.json`, and the gates compute them again from `requests.jsonl`.

use protocol::Nanos;

const NS_PER_SECOND: f64 = 1e9;

/// Collects requests in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    lags: Vec<i64>,
    /// Planned instant and lag of the dispatched request that was planned last.
    last: Option<(Nanos, i64)>,
}

/// The figures of one repetition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaceFigures {
    /// Requests whose connection was begun.
    pub dispatched: u64,
    /// Attempted per second of schedule.
    pub offered_rps: f64,
    /// Dispatched per second that dispatching took: the schedule plus the lag of its last request.
    pub achieved_rps: f64,
    /// Median of dispatched - planned (nearest rank), ns; nothing when nothing was dispatched.
    pub lag_p50_ns: Option<i64>,
    /// 99th percentile of it.
    pub lag_p99_ns: Option<i64>,
    /// Largest.
    pub lag_max_ns: Option<i64>,
}

impl Pace {
    /// Takes one request; one that was never dispatched has no lag.
    pub fn add(&mut self, planned: Nanos, dispatched: Option<Nanos>) {
        if let Some(dispatched) = dispatched {
            let lag = dispatched.since(planned);
            self.lags.push(lag);
            self.last = self.last.max(Some((planned, lag)));
        }
    }

    /// The figures of a schedule of `attempted` requests in `length_ns`.
    #[must_use]
    pub fn figures(mut self, attempted: usize, length_ns: u64) -> PaceFigures {
        self.lags.sort_unstable();
        let late_ns = self.last.map_or(0, |(_, lag)| u64::try_from(lag).unwrap_or(0));
        let dispatched = self.lags.len();
        PaceFigures {
            dispatched: u64::try_from(dispatched).unwrap_or(u64::MAX),
            offered_rps: per_second(attempted, length_ns),
            achieved_rps: per_second(dispatched, length_ns.saturating_add(late_ns)),
            lag_p50_ns: nearest_rank(&self.lags, 50),
            lag_p99_ns: nearest_rank(&self.lags, 99),
            lag_max_ns: self.lags.last().copied(),
        }
    }
}

/// Percentile by nearest rank (type 1) of sorted values.
fn nearest_rank<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people and a gate of 1 %")]
fn per_second(count: usize, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { count as f64 * NS_PER_SECOND / ns as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_from_the_instants_and_not_from_their_order() {
        let at = |ms: u64| Nanos::new(ms * 1_000_000);
        let rows = [(at(0), Some(at(1))), (at(500), None), (at(900), Some(at(1_000)))];
        let figures = |rows: &[(Nanos, Option<Nanos>)]| {
            let mut pace = Pace::default();
            rows.iter().for_each(|(planned, dispatched)| pace.add(*planned, *dispatched));
            pace.figures(3, 1_000_000_000)
        };
        let mut reversed = rows;
        reversed.reverse();
        let found = figures(&rows);
        assert_eq!(found, figures(&reversed));
        assert_eq!((found.dispatched, found.offered_rps), (2, 3.0));
        assert!((found.achieved_rps - 2.0 / 1.1).abs() < 1e-9, "{}", found.achieved_rps);
        assert_eq!((found.lag_p50_ns, found.lag_max_ns), (Some(1_000_000), Some(100_000_000)));
        let nothing = Pace::default().figures(3, 0);
        assert_eq!((nothing.lag_p99_ns, nothing.achieved_rps), (None, 0.0));
    }
}
