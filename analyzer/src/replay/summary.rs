//! What a run leaves in the caller's hands: `run.json` and the counts.

use std::collections::BTreeMap;

use protocol::Nanos;

use super::config::ReplayConfig;
use crate::outcome::Class;
use crate::records::{RequestRecord, RunRecord, StampSource, Versioned as _};

const NS_PER_SECOND: f64 = 1e9;

/// One finished replay.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// Content of `run.json`, without agents: the caller adds them and writes it.
    pub run: RunRecord,
    /// Requests per class; they add up to `run.attempted`.
    pub classes: BTreeMap<Class, u64>,
    /// Headline TTFT of every request that got a token, in nanoseconds, sorted.
    pub ttft_ns: Vec<i64>,
    /// TPOT of every request that has one, in nanoseconds, sorted.
    pub tpot_ns: Vec<u64>,
}

impl RunSummary {
    /// Delivered, single-token included.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.classes.iter().filter(|(class, _)| class.is_delivered()).map(|(_, count)| count).sum()
    }
}

/// Sums records up as they are written.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    lags: Vec<i64>,
    ttft_ns: Vec<i64>,
    tpot_ns: Vec<u64>,
    last_dispatch: Option<(Nanos, i64)>,
    last_end: Option<Nanos>,
    coalesced_reads: u64,
    stamp_fallbacks: u64,
}

impl Tally {
    pub(super) fn add(&mut self, record: &RequestRecord) {
        if let Some(dispatched) = record.dispatched_ns {
            let lag = dispatched.since(record.planned_ns);
            self.lags.push(lag);
            self.last_dispatch = self.last_dispatch.max(Some((record.planned_ns, lag)));
        }
        self.ttft_ns.extend(record.ttft_ns);
        self.tpot_ns.extend(record.tpot_ns);
        self.last_end = self.last_end.max(Some(record.end_ns));
        self.coalesced_reads += u64::from(record.coalesced_read == Some(true));
        let fallback = matches!(record.stamp_source, Some(StampSource::Clock | StampSource::Mixed));
        self.stamp_fallbacks += u64::from(fallback);
    }

    pub(super) fn finish(
        mut self,
        config: &ReplayConfig<'_>,
        facts: Facts,
        classes: BTreeMap<Class, u64>,
    ) -> RunSummary {
        self.lags.sort_unstable();
        self.ttft_ns.sort_unstable();
        self.tpot_ns.sort_unstable();
        let run = self.record(config, facts);
        RunSummary { run, classes, ttft_ns: self.ttft_ns, tpot_ns: self.tpot_ns }
    }

    fn record(&self, config: &ReplayConfig<'_>, facts: Facts) -> RunRecord {
        let schedule = config.schedule;
        let attempted = schedule.requests().len();
        let length_ns = schedule.length_ns();
        let late_ns = self.last_dispatch.map_or(0, |(_, lag)| u64::try_from(lag).unwrap_or(0));
        RunRecord {
            schema: RunRecord::SCHEMA.to_owned(),
            arm: config.identity.arm.clone(),
            rate_rps: schedule.rate_rps(),
            repetition: config.identity.repetition,
            schedule_sha256: facts.schedule_sha256,
            salt: config.salt.map(|salt| salt.as_text()),
            window_start_ns: facts.start,
            window_end_ns: self.last_end.unwrap_or(facts.start),
            schedule_length_ns: length_ns,
            attempted: wide(attempted),
            dispatched: wide(self.lags.len()),
            offered_rps: per_second(attempted, length_ns),
            achieved_rps: per_second(self.lags.len(), length_ns.saturating_add(late_ns)),
            lag_p50_ns: nearest_rank(&self.lags, 50),
            lag_p99_ns: nearest_rank(&self.lags, 99),
            lag_max_ns: self.lags.last().copied(),
            connections: facts.connections,
            coalesced_reads: self.coalesced_reads,
            stamp_fallbacks: self.stamp_fallbacks,
            clock_steps: facts.clock_steps,
            interrupted: facts.interrupted,
            oversized_bodies: facts.oversized_bodies,
            burstiness: schedule.burstiness(),
            agents: Vec::new(),
        }
    }
}

/// What the run knows beside its records.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) schedule_sha256: String,
    pub(super) start: Nanos,
    pub(super) connections: u64,
    pub(super) clock_steps: u64,
    pub(super) interrupted: bool,
    pub(super) oversized_bodies: u64,
}

/// Percentile by nearest rank (type 1) of sorted values.
pub(super) fn nearest_rank<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people and a gate of 1 %")]
fn per_second(count: usize, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { count as f64 * NS_PER_SECOND / ns as f64 }
}
