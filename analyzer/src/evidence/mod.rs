//! A run directory read back whole: what analysis and verification start from.

mod health;
mod load;

pub use health::{BackendHealth, HealthFile, VipHealth};
pub use load::{EvidenceError, load};
pub(crate) use load::{derived_slo, kernel_file};

use std::collections::BTreeMap;

use crate::campaign::Campaign;
use crate::join::Observed;
use crate::records::{RequestRecord, RunRecord, ScheduleRecord};
use crate::rundir::{
    GatewayFile, ImportFile, Manifest, ProbeFile, ReadDerivedSlo, ReadinessRow, SloFile,
};

/// Where a repetition lies. Its directory says so; `run.json` has to say the same.
#[derive(Clone, Debug, PartialEq)]
pub struct CellPlace {
    /// Name of the arm.
    pub arm: String,
    /// Offered rate, requests per second.
    pub rate_rps: f64,
    /// Number of the repetition, from 1.
    pub repetition: u32,
}

/// One measured repetition of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Repetition {
    /// The directory it was read from.
    pub place: CellPlace,
    /// What was planned.
    pub schedule: Vec<ScheduleRecord>,
    /// What became of it.
    pub requests: Vec<RequestRecord>,
    /// How the replay went.
    pub run: RunRecord,
    /// What the gateway said of itself.
    pub gateway: Option<GatewayFile>,
    /// What each agent saw.
    pub observed: Vec<Observed>,
    /// Files of records whose last line has no end, with the bytes that were left out.
    pub torn: Vec<(String, usize)>,
}

/// Everything of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The campaign as it lies in the run directory.
    pub campaign: Campaign,
    /// Hashes and versions.
    pub manifest: Manifest,
    /// SHA-256 of `trace.jsonl` as it lies there now.
    pub trace_sha256: String,
    /// The SLO.
    pub slo: SloFile,
    /// `slo.json` is there; otherwise `slo` was derived anew.
    pub slo_recorded: bool,
    /// The unloaded requests that a derived SLO follows from; nothing when they are absent.
    pub baseline: Option<Vec<RequestRecord>>,
    /// The file of a derived SLO that the campaign names; nothing when it is absent or none is named.
    pub derived: Option<ReadDerivedSlo>,
    /// Phase 0; nothing when it was not run.
    pub health: Option<HealthFile>,
    /// Phase 2, by arm.
    pub probes: BTreeMap<String, ProbeFile>,
    /// Readiness during the cells; nothing when it was not recorded.
    pub readiness: Option<Vec<ReadinessRow>>,
    /// Where the records come from when another tool measured; nothing for what `goodput run` wrote.
    pub import: Option<ImportFile>,
    /// Phase 3: measured repetitions in order of arm, rate and number.
    pub repetitions: Vec<Repetition>,
}

impl Evidence {
    /// Repetitions of one cell, ascending.
    pub fn cell<'a>(&'a self, arm: &'a str, rate_rps: f64) -> impl Iterator<Item = &'a Repetition> {
        let of_cell = move |rep: &&Repetition| {
            rep.place.arm == arm && rep.place.rate_rps.total_cmp(&rate_rps).is_eq()
        };
        self.repetitions.iter().filter(of_cell)
    }

    /// Most output tokens that any recorded schedule asks for; nothing before the first repetition.
    #[must_use]
    pub fn largest_output(&self) -> Option<u64> {
        largest_output(&self.repetitions)
    }
}

fn largest_output(repetitions: &[Repetition]) -> Option<u64> {
    repetitions.iter().flat_map(|rep| &rep.schedule).map(|row| row.output_tokens).max()
}
