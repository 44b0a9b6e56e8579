//! Phase 4: from records to good-fraction, knee, goodput and the difference to the floor arm.
//!
//! Pure: the same evidence gives the same bytes of `analysis.json`.

mod breakdown;
mod cell;
mod equivalence;
mod good;
mod knee;
mod latency;
mod repetition;
mod sensitivity;
mod win;

pub use breakdown::{Band, ByLength};
pub use cell::CellAnalysis;
pub use equivalence::EquivalenceTest;
pub use good::{Bounds, Mask, good};
pub use knee::{Knee, KneeOutcome, Rung};
pub use latency::{Latency, WithinRunIntervals};
pub use repetition::{RepetitionAnalysis, TokenShare};
pub use sensitivity::SloPoint;
pub use win::{Comparison, Outcome, PermutationP};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::campaign::{ArmKeys, Campaign, SingleTokenPolicy};
use crate::evidence::Evidence;
use crate::join::CrossCheck;
use crate::records::Versioned;
use crate::rundir::SloFile;
use crate::stats::{HalfWidth, noise_floor_bootstrap, resolvable_difference_t};
use crate::verify::copies::copies;

/// `analysis.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnalysisFile {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// Name of the campaign.
    pub campaign: String,
    /// Bounds of a good request and where they come from.
    pub slo: SloFile,
    /// Good-fraction that a rate must reach.
    pub target: f64,
    /// What a request without a TPOT counts as in every headline figure.
    pub single_token_policy: SingleTokenPolicy,
    /// Confidence of two-sided intervals.
    pub confidence: f64,
    /// Repetitions of a cell before it may be published.
    pub repetitions_needed: u32,
    /// What repeating one trace can support.
    pub scope: String,
    /// Arms in the campaign's order.
    pub arms: Vec<ArmAnalysis>,
    /// Every other arm against the floor, per rate.
    pub comparisons: Vec<Comparison>,
    /// The smallest difference the floor's repetitions resolve, per rate.
    pub noise: Vec<Noise>,
}

impl Versioned for AnalysisFile {
    const SCHEMA: &'static str = "goodput.analysis/1";
}

/// One arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmAnalysis {
    /// Its name.
    pub name: String,
    /// It is the floor.
    pub floor: bool,
    /// Accelerators behind it.
    pub accelerators: u64,
    /// Cells by ascending rate.
    pub cells: Vec<CellAnalysis>,
    /// The highest tested rate that meets the target.
    pub knee: Knee,
    /// In which share of all joint resamples of the repetitions each rate is the isotonic knee, as
    /// `(rate_rps, share)`; what is missing to 1 lies below the lowest rate. Nothing unless every rate has the
    /// same 2 to 12 valid repetitions.
    pub knee_resampled: Option<Vec<(f64, f64)>>,
    /// Client against kernel over all repetitions of the arm.
    pub crosscheck: CrossCheck,
}

/// Noise of the floor arm at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Offered rate, requests per second.
    pub rate_rps: f64,
    /// Valid repetitions.
    pub repetitions: usize,
    /// Half width of the enumerated bootstrap interval of the mean good-fraction.
    pub noise_floor_bootstrap: HalfWidth,
    /// Difference of two arms this noisy that the t interval resolves.
    pub resolvable_difference_t: HalfWidth,
}

/// Reduces a run's evidence.
#[must_use]
pub fn analyze(evidence: &Evidence) -> AnalysisFile {
    let campaign = &evidence.campaign;
    let keys = campaign.keys();
    let copies = copies(evidence);
    let arms: Vec<ArmAnalysis> =
        keys.arm.iter().map(|arm| arm_analysis(evidence, &copies, arm)).collect();
    let floor = arms.iter().find(|arm| arm.floor);
    AnalysisFile {
        schema: AnalysisFile::SCHEMA.to_owned(),
        campaign: keys.name.clone(),
        slo: evidence.slo.clone(),
        target: keys.slo.target,
        single_token_policy: keys.statistics.single_token,
        confidence: keys.statistics.confidence,
        repetitions_needed: keys.load.published_repetitions(),
        scope: "this trace, these rates, this fleet".to_owned(),
        comparisons: floor.map(|floor| win::all(campaign, floor, &arms)).unwrap_or_default(),
        noise: floor.map(|floor| noise(campaign, floor)).unwrap_or_default(),
        arms,
    }
}

fn arm_analysis(
    evidence: &Evidence,
    copies: &BTreeMap<String, String>,
    arm: &ArmKeys,
) -> ArmAnalysis {
    let campaign = &evidence.campaign;
    let cells: Vec<CellAnalysis> = campaign
        .rates()
        .into_iter()
        .map(|rate| cell::analyze(evidence, copies, arm, rate))
        .collect();
    ArmAnalysis {
        name: arm.name.clone(),
        floor: arm.floor,
        accelerators: arm.accelerators,
        knee: knee::knee(campaign, &cells),
        knee_resampled: knee::resampled(campaign, &cells),
        crosscheck: cell::arm_crosscheck(evidence, arm),
        cells,
    }
}

fn noise(campaign: &Campaign, floor: &ArmAnalysis) -> Vec<Noise> {
    let statistics = &campaign.keys().statistics;
    let of = |cell: &CellAnalysis| {
        let fractions = cell.valid_fractions();
        let (n, need) = (fractions.len(), statistics.min_baseline_reps);
        let enough = |width: HalfWidth| match n < need {
            true => HalfWidth::NotAttainable { reason: format!("{n} repetitions, {need} needed") },
            false => width,
        };
        Noise {
            rate_rps: cell.rate_rps,
            repetitions: n,
            noise_floor_bootstrap: enough(noise_floor_bootstrap(&fractions, statistics.confidence)),
            resolvable_difference_t: enough(resolvable_difference_t(
                &fractions,
                statistics.confidence,
            )),
        }
    };
    floor.cells.iter().map(of).collect()
}

/// Where a finding belongs, as printed: `arm`, `arm r40` or `arm r40 rep3`.
#[must_use]
pub fn place(arm: &str, rate_rps: Option<f64>, repetition: Option<u32>) -> String {
    let rate = rate_rps.map(|rate| format!(" r{rate}")).unwrap_or_default();
    let repetition = repetition.map(|n| format!(" rep{n}")).unwrap_or_default();
    format!("{arm}{rate}{repetition}")
}

#[cfg(test)]
mod tests;
