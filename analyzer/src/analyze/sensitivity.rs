//! How the good-fraction of a cell hangs on the SLO: a claim that a slightly other bound overturns is fragile.

use serde::{Deserialize, Serialize};

use super::good::{Bounds, good};
use crate::campaign::SingleTokenPolicy;
use crate::evidence::Repetition;
use crate::stats::Counts;

/// Multiples of each bound. Exploratory: nothing is claimed from another than 1.
const MULTIPLES: [f64; 5] = [0.5, 0.8, 1.0, 1.25, 2.0];

/// The good-fraction under other bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SloPoint {
    /// TTFT bound as a multiple of the SLO's.
    pub ttft_multiple: f64,
    /// TPOT bound as a multiple of the SLO's.
    pub tpot_multiple: f64,
    /// Good / attempted over the valid repetitions.
    pub good_fraction: f64,
}

/// Every combination; none without an attempted request.
pub(super) fn sensitivity(
    valid: &[&Repetition],
    bounds: Bounds,
    policy: SingleTokenPolicy,
) -> Vec<SloPoint> {
    let pairs = MULTIPLES.iter().flat_map(|ttft| MULTIPLES.iter().map(move |tpot| (*ttft, *tpot)));
    pairs.filter_map(|pair| point(valid, bounds, policy, pair)).collect()
}

fn point(
    valid: &[&Repetition],
    bounds: Bounds,
    policy: SingleTokenPolicy,
    (ttft_multiple, tpot_multiple): (f64, f64),
) -> Option<SloPoint> {
    let bounds = Bounds {
        ttft_ns: scaled(bounds.ttft_ns, ttft_multiple),
        tpot_ns: scaled(bounds.tpot_ns, tpot_multiple),
    };
    let counts = valid.iter().fold(Counts::default(), |sum, rep| {
        let good = rep.requests.iter().filter(|row| good(row, bounds, policy)).count() as u64;
        sum.plus(Counts { good, attempted: rep.schedule.len() as u64 })
    });
    let good_fraction = counts.fraction()?;
    Some(SloPoint { ttft_multiple, tpot_multiple, good_fraction })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounds are positive, and doubling one stays far below 2^64 ns"
)]
fn scaled(bound_ns: u64, multiple: f64) -> u64 {
    (bound_ns as f64 * multiple).round() as u64
}
