//! The knee: the highest tested rate whose pooled good-fraction meets the target.

use serde::{Deserialize, Serialize};

use super::cell::CellAnalysis;
use crate::campaign::Campaign;
use crate::stats::{
    CertifiedKnee, LadderRate, LadderRung, certified_knee, knee_bootstrap, knee_interpolated,
    knee_isotonic,
};

/// One-sided confidence of the certified knee.
const CERTIFIED_CONFIDENCE: f64 = 0.95;

/// A rung of the ladder that meets the target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// Offered rate, requests per second.
    pub rate_rps: f64,
    /// Pooled good-fraction.
    pub good_fraction: f64,
    /// goodput@SLO: good requests per second and accelerator.
    pub goodput_per_accelerator: f64,
}

/// What the ladder says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum KneeOutcome {
    /// A rate meets the target and a higher one fails it.
    Bracketed {
        /// The knee.
        rung: Rung,
    },
    /// The highest tested rate meets the target: the knee is at least this.
    AtLeast {
        /// The highest rung.
        rung: Rung,
    },
    /// No tested rate meets the target: the knee is below this.
    Below {
        /// The lowest tested rate.
        rate_rps: f64,
    },
    /// It cannot be told: the rungs that decide lack valid repetitions.
    NoCandidate,
}

impl KneeOutcome {
    /// The rung of the knee, when a rate meets the target.
    #[must_use]
    pub fn rung(&self) -> Option<Rung> {
        match self {
            Self::Bracketed { rung } | Self::AtLeast { rung } => Some(*rung),
            Self::Below { .. } | Self::NoCandidate => None,
        }
    }
}

/// Knee of one arm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// Over the rungs with enough valid repetitions: the figure that counts.
    pub tested: KneeOutcome,
    /// Over every rung with a valid repetition: what shows before enough repetitions exist.
    pub provisional: KneeOutcome,
    /// No rate fails the target below one that meets it.
    pub monotone: bool,
    /// Last rate before the first failure; differs from the knee when the ladder is not monotone.
    pub conservative_rps: Option<f64>,
    /// The last rate that is certain to meet the target, and the first that is certain to fail it.
    pub certified: CertifiedKnee,
    /// Knee of the decreasing curve nearest to the good-fractions.
    pub isotonic: LadderRate,
    /// Where the line between two tested rates crosses the target, rps. For comparison with figures that are
    /// published so: nothing was measured there.
    pub interpolated_rps: Option<f64>,
}

pub(super) fn knee(campaign: &Campaign, cells: &[CellAnalysis]) -> Knee {
    let keys = campaign.keys();
    let target = keys.slo.target;
    let passes: Vec<bool> = rungs(cells, 1).iter().map(|rung| meets(rung, target)).collect();
    let first_failure = passes.iter().position(|pass| !pass).unwrap_or(passes.len());
    let all = rungs(cells, 1);
    let points: Vec<(f64, f64)> =
        all.iter().map(|rung| (rung.rate_rps, rung.good_fraction)).collect();
    let ladder = ladder(cells);
    Knee {
        tested: outcome(&rungs(cells, keys.load.published_repetitions() as usize), target, cells),
        provisional: outcome(&all, target, cells),
        monotone: passes.iter().skip(first_failure).all(|pass| !pass),
        conservative_rps: all.get(..first_failure).and_then(<[Rung]>::last).map(|r| r.rate_rps),
        certified: certified_knee(&ladder, target, CERTIFIED_CONFIDENCE),
        isotonic: knee_isotonic(&ladder, target),
        interpolated_rps: knee_interpolated(&points, target),
    }
}

/// Shares of the joint resamples in which each rate is the knee.
pub(super) fn resampled(campaign: &Campaign, cells: &[CellAnalysis]) -> Option<Vec<(f64, f64)>> {
    let law = knee_bootstrap(&ladder(cells), campaign.keys().slo.target)?;
    let share = |(rate, n): (f64, u64)| (rate, n as f64 / law.total as f64);
    Some(law.rates.iter().copied().map(share).collect())
}

/// Valid repetitions of every rate that has one.
fn ladder(cells: &[CellAnalysis]) -> Vec<LadderRung> {
    let measured = cells.iter().filter(|cell| cell.valid > 0);
    measured
        .map(|cell| LadderRung {
            rate_rps: cell.rate_rps,
            repetitions: cell.valid_repetitions().map(|rep| rep.counts).collect(),
        })
        .collect()
}

fn meets(rung: &Rung, target: f64) -> bool {
    rung.good_fraction >= target
}

fn rungs(cells: &[CellAnalysis], repetitions: usize) -> Vec<Rung> {
    let enough = cells.iter().filter(|cell| cell.valid >= repetitions);
    let rung = |cell: &CellAnalysis| {
        Some(Rung {
            rate_rps: cell.rate_rps,
            good_fraction: cell.good_fraction?,
            goodput_per_accelerator: cell.goodput_per_accelerator?,
        })
    };
    enough.filter_map(rung).collect()
}

/// "At least" needs the ladder's highest rung among the candidates, and "below" its lowest one.
fn outcome(rungs: &[Rung], target: f64, ladder: &[CellAnalysis]) -> KneeOutcome {
    let end = |cell: Option<&CellAnalysis>, rung: Option<&Rung>| {
        cell.map(|cell| cell.rate_rps) == rung.map(|rung| rung.rate_rps)
    };
    let complete_above = end(ladder.last(), rungs.last());
    let complete_below = end(ladder.first(), rungs.first());
    let knee = rungs.iter().rposition(|rung| meets(rung, target));
    match (knee, rungs.first()) {
        (Some(knee), _) if knee + 1 < rungs.len() => KneeOutcome::Bracketed { rung: rungs[knee] },
        (Some(knee), _) if complete_above => KneeOutcome::AtLeast { rung: rungs[knee] },
        (None, Some(lowest)) if complete_below => KneeOutcome::Below { rate_rps: lowest.rate_rps },
        _ => KneeOutcome::NoCandidate,
    }
}
