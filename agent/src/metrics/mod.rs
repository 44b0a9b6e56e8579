//! `/metrics`: everything that the agent counts, of one tick, as OpenMetrics text (`docs/metrics.md`).

mod book;
mod catalog;
mod histogram;
mod parse;
mod text;

pub use book::{Book, EndpointBook};
pub use catalog::{CATALOG, Family, Kind};
pub use histogram::{Bounds, DURATION_BOUNDS, Histogram, TPOT_BOUNDS, TTFT_BOUNDS};
pub use parse::{Families, ParseError, ParsedFamily, Sample, parse};
pub use text::{CONTENT_TYPE, Process, openmetrics};

use std::collections::BTreeSet;

use protocol::Nanos;

use crate::endpoint::Role;
use crate::inflight::GaugeRow;
use crate::legs::LegCounts;
use crate::window::{Reason, WindowCounters};

/// What went through one interface since the agent started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCount {
    /// Its name.
    pub name: String,
    /// Packets that the programs saw.
    pub packets: u64,
    /// Packets that the interface received and the programs never saw.
    pub preempted: u64,
}

/// Everything that the worker knows at one instant at which its source was drained.
#[derive(Clone, Debug)]
pub struct Tick {
    /// Number of this tick since the agent started, from 1.
    pub number: u64,
    /// When.
    pub at: Nanos,
    /// Since the agent started.
    pub counters: WindowCounters,
    /// Why not everything was seen since the agent started.
    pub reasons: BTreeSet<Reason>,
    /// What is in flight.
    pub gauges: Vec<GaugeRow>,
    /// Requests that ended, per endpoint.
    pub book: Book,
    /// Legs that were paired.
    pub legs: LegCounts,
    /// Windows kept.
    pub windows: usize,
    /// Windows given up because nobody called about them.
    pub windows_expired: u64,
    /// Connections in the flow table.
    pub flows: usize,
    /// Interfaces watched.
    pub interfaces: Vec<InterfaceCount>,
    /// Errors on writing the JSONL file.
    pub jsonl_errors: u64,
}

/// Requests in flight at the busiest endpoint of a role, over the mean of all endpoints of that role;
/// `None` when nothing is in flight (methodology, phase 2: peak/mean).
#[must_use]
pub fn concentration(gauges: &[GaugeRow], role: Role) -> Option<f64> {
    let requests = || gauges.iter().filter(|row| row.role == role).map(|row| row.requests);
    let (peak, sum, count) = (requests().max()?, requests().sum::<u64>(), requests().count());
    (sum > 0).then(|| count_f64(peak) * count_f64(count as u64) / count_f64(sum))
}

/// A count as a float: exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "counts beyond 2^53 do not occur")]
pub(crate) fn count_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
