//! What has to be added before a verdict can be published.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::code::{Code, Effect, Finding};
use crate::analyze::{AnalysisFile, CellAnalysis};
use crate::evidence::Evidence;
use crate::rundir::resume_command;

/// Repetitions to add to every cell, and what they cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replicates {
    /// Number of repetitions that every cell should then have.
    pub repetitions: u32,
    /// Repetitions to add, over all cells.
    pub to_add: u64,
    /// Requests to send.
    pub requests: u64,
    /// Minutes of schedule.
    pub minutes: f64,
    /// The command that continues.
    pub command: String,
}

impl Replicates {
    pub(super) fn of(
        evidence: &Evidence,
        analysis: &AnalysisFile,
        findings: &[Finding],
        run_dir: &str,
    ) -> Option<Self> {
        let asks = |code| findings.iter().any(|finding| finding.code == code);
        let adds = |finding: &Finding| finding.effect == Effect::AddReplicates;
        if !findings.iter().any(adds) {
            return None;
        }
        let cells = || analysis.arms.iter().flat_map(|arm| &arm.cells);
        let last = |cell: &CellAnalysis| cell.repetitions.iter().map(|rep| rep.repetition).max();
        let recorded = cells().filter_map(last).max().map_or(0, |last| last as usize);
        let attempted = cells().flat_map(|cell| &cell.repetitions).map(|rep| rep.counts.attempted);
        let usual = attempted.max().unwrap_or(0);
        let load = &evidence.campaign.keys().load;
        // Invalid repetitions must be made up for; a wide spread needs a look at half as many again.
        let lacking = cells()
            .map(|cell| {
                cell.repetitions.len()
                    + (load.published_repetitions() as usize).saturating_sub(cell.valid)
            })
            .max()
            .unwrap_or(0);
        let wider = if asks(Code::CvOverBound) { recorded + recorded.div_ceil(2) } else { 0 };
        let goal = lacking.max(wider).max(recorded).min(load.max_repetitions as usize);
        let missing = |n: usize| goal.saturating_sub(n) as u64;
        let (mut to_add, mut requests, mut seconds) = (0, 0, 0.0);
        for cell in cells() {
            let add = missing(cell.repetitions.len());
            let size = cell.repetitions.first().map_or(usual, |rep| rep.counts.attempted);
            to_add += add;
            requests += add * size;
            seconds += add as f64 * size as f64 / cell.rate_rps;
        }
        let repetitions = u32::try_from(goal).unwrap_or(load.max_repetitions);
        let manifest = &evidence.manifest;
        let command = resume_command(
            Path::new(&manifest.campaign_path),
            Path::new(run_dir),
            Some(repetitions),
            manifest.without_agent,
        );
        Some(Self { repetitions, to_add, requests, minutes: seconds / 60.0, command })
    }
}
