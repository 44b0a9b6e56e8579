//! The knee: the highest tested rate whose pooled good-fraction meets the target.

use serde::{Deserialize, Serialize};

use super::cell::CellAnalysis;
use crate::campaign::Campaign;

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
    /// No rung has as many valid repetitions as pre-registered.
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
}

pub(super) fn knee(campaign: &Campaign, cells: &[CellAnalysis]) -> Knee {
    let keys = campaign.keys();
    let target = keys.slo.target;
    let passes: Vec<bool> = rungs(cells, 1).iter().map(|rung| meets(rung, target)).collect();
    let first_failure = passes.iter().position(|pass| !pass).unwrap_or(passes.len());
    let all = rungs(cells, 1);
    Knee {
        tested: outcome(&rungs(cells, keys.load.published_repetitions() as usize), target),
        provisional: outcome(&all, target),
        monotone: passes.iter().skip(first_failure).all(|pass| !pass),
        conservative_rps: all.get(..first_failure).and_then(<[Rung]>::last).map(|r| r.rate_rps),
    }
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

fn outcome(rungs: &[Rung], target: f64) -> KneeOutcome {
    let (Some(lowest), Some(highest)) = (rungs.first(), rungs.last()) else {
        return KneeOutcome::NoCandidate;
    };
    match rungs.iter().rev().find(|rung| meets(rung, target)) {
        Some(rung) if rung.rate_rps < highest.rate_rps => KneeOutcome::Bracketed { rung: *rung },
        Some(rung) => KneeOutcome::AtLeast { rung: *rung },
        None => KneeOutcome::Below { rate_rps: lowest.rate_rps },
    }
}
