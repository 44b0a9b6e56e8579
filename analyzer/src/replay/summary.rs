//! What a run leaves in the caller's hands: `run.json` and the counts.

use std::collections::BTreeMap;

use protocol::Nanos;

use super::config::ReplayConfig;
use crate::outcome::Class;
use crate::records::{Pace, RequestRecord, RunRecord, StampSource, Versioned as _};

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
    pace: Pace,
    ttft_ns: Vec<i64>,
    tpot_ns: Vec<u64>,
    last_end: Option<Nanos>,
    coalesced_reads: u64,
    stamp_fallbacks: u64,
}

impl Tally {
    pub(super) fn add(&mut self, record: &RequestRecord) {
        self.pace.add(record.planned_ns, record.dispatched_ns);
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
        self.ttft_ns.sort_unstable();
        self.tpot_ns.sort_unstable();
        let run = self.record(config, facts);
        RunSummary { run, classes, ttft_ns: self.ttft_ns, tpot_ns: self.tpot_ns }
    }

    fn record(&self, config: &ReplayConfig<'_>, facts: Facts) -> RunRecord {
        let schedule = config.schedule;
        let attempted = schedule.requests().len();
        let length_ns = schedule.length_ns();
        let pace = self.pace.clone().figures(attempted, length_ns);
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
            dispatched: pace.dispatched,
            offered_rps: pace.offered_rps,
            achieved_rps: pace.achieved_rps,
            lag_p50_ns: pace.lag_p50_ns,
            lag_p99_ns: pace.lag_p99_ns,
            lag_max_ns: pace.lag_max_ns,
            connection_mode: config.connections,
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

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
