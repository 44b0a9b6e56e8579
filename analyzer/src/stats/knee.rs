//! Where a ladder of rates stops meeting the target: as tested, and as certified.

use serde::{Deserialize, Serialize};

use super::Interval;
use super::isotonic::isotonic_decreasing;
use super::proportion::{Counts, wilson};
use super::t_interval::t_interval;

/// One rate of a ladder with the counts of its repetitions.
#[derive(Clone, Debug, PartialEq)]
pub struct LadderRung {
    /// Offered rate, requests per second.
    pub rate_rps: f64,
    /// Good and attempted of each repetition.
    pub repetitions: Vec<Counts>,
}

impl LadderRung {
    /// Counts of all repetitions added.
    #[must_use]
    pub fn pooled(&self) -> Counts {
        self.repetitions.iter().fold(Counts::default(), |sum, rep| sum.plus(*rep))
    }
}

/// A rate read off a ladder, censored where the ladder ends. Nothing is extrapolated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum LadderRate {
    /// This rate, with a higher one tested.
    At {
        /// Requests per second.
        rate_rps: f64,
    },
    /// At least the highest rate tested.
    AtLeast {
        /// Requests per second.
        rate_rps: f64,
    },
    /// Below the lowest rate tested.
    Below {
        /// Requests per second.
        rate_rps: f64,
    },
    /// No rate was tested.
    Untested,
}

impl LadderRate {
    /// The rate, unless the knee lies below the ladder.
    #[must_use]
    pub fn rate(self) -> Option<f64> {
        match self {
            Self::At { rate_rps } | Self::AtLeast { rate_rps } => Some(rate_rps),
            Self::Below { .. } | Self::Untested => None,
        }
    }

    fn of(ladder: &[LadderRung], knee: Option<usize>) -> Self {
        let (Some(first), Some(last)) = (ladder.first(), ladder.len().checked_sub(1)) else {
            return Self::Untested;
        };
        match knee {
            Some(knee) if knee < last => Self::At { rate_rps: ladder[knee].rate_rps },
            Some(_) => Self::AtLeast { rate_rps: ladder[last].rate_rps },
            None => Self::Below { rate_rps: first.rate_rps },
        }
    }
}

/// The highest rate whose pooled good-fraction is at least `target`: the headline.
#[must_use]
pub fn knee_tested(ladder: &[LadderRung], target: f64) -> LadderRate {
    let meets = |rung: &LadderRung| rung.pooled().fraction().is_some_and(|p| p >= target);
    LadderRate::of(ladder, ladder.iter().rposition(meets))
}

/// The last rate before the first failure: the conservative figure of a ladder that is not monotone.
#[must_use]
pub fn knee_before_first_failure(ladder: &[LadderRung], target: f64) -> LadderRate {
    let meets = |rung: &LadderRung| rung.pooled().fraction().is_some_and(|p| p >= target);
    let passed = ladder.iter().take_while(|rung| meets(rung)).count();
    LadderRate::of(ladder, passed.checked_sub(1))
}

/// The highest rate whose isotonic good-fraction is at least `target`.
#[must_use]
pub fn knee_isotonic(ladder: &[LadderRung], target: f64) -> LadderRate {
    let pooled: Vec<Counts> = ladder.iter().map(LadderRung::pooled).collect();
    let curve = isotonic_decreasing(&pooled).unwrap_or_default();
    LadderRate::of(ladder, curve.iter().rposition(|p| *p >= target))
}

/// Where the line between the first two rates on either side of the target crosses it, as DistServe's script
/// reads its curves. For comparison with published figures only: no such rate was tested.
#[must_use]
pub fn knee_interpolated(points: &[(f64, f64)], target: f64) -> Option<f64> {
    let crossing = points.windows(2).find(|pair| (pair[0].1 >= target) != (pair[1].1 >= target))?;
    let ((x0, y0), (x1, y1)) = (crossing[0], crossing[1]);
    Some(x0 + (x1 - x0) * (target - y0) / (y1 - y0))
}

/// A knee with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CertifiedKnee {
    /// Climbing from the lowest rate, the last whose one-sided lower bound is at least the target, stopping at
    /// the first that is not: rates tested in a fixed order need no correction for their number.
    pub certified: LadderRate,
    /// The first rate whose one-sided upper bound is below the target; none when every rate may meet it.
    pub fails_from_rps: Option<f64>,
    /// One-sided confidence of both bounds.
    pub confidence: f64,
}

/// Certified knee and upper bracket of an ascending ladder, by t bounds over repetitions.
#[must_use]
pub fn certified_knee(ladder: &[LadderRung], target: f64, confidence: f64) -> CertifiedKnee {
    let bounds = |rung: &LadderRung| one_sided_bounds(&rung.repetitions, confidence);
    let holds = |rung: &&LadderRung| bounds(rung).is_some_and(|(low, _)| low >= target);
    let certified = ladder.iter().take_while(holds).count();
    let fails = |rung: &&LadderRung| bounds(rung).is_some_and(|(_, high)| high < target);
    CertifiedKnee {
        certified: LadderRate::of(ladder, certified.checked_sub(1)),
        fails_from_rps: ladder.iter().find(fails).map(|rung| rung.rate_rps),
        confidence,
    }
}

/// Both one-sided bounds: t over repetitions; Wilson over pooled requests where no repetition varies.
fn one_sided_bounds(repetitions: &[Counts], confidence: f64) -> Option<(f64, f64)> {
    let two_sided = 2.0 * confidence - 1.0;
    let fractions: Vec<f64> = repetitions.iter().filter_map(|rep| rep.fraction()).collect();
    match t_interval(&fractions, two_sided) {
        Interval::Degenerate { .. } => {
            let pooled = repetitions.iter().fold(Counts::default(), |sum, rep| sum.plus(*rep));
            wilson(pooled, two_sided).ends()
        }
        interval => interval.ends(),
    }
}
