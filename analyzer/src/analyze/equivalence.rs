//! Equivalence of an arm with the floor at one rate, where the campaign registered a margin.

use serde::{Deserialize, Serialize};

use super::cell::CellAnalysis;
use crate::campaign::{Comparison as Method, StatisticsKeys};
use crate::stats::{
    Counts, Design, Equivalence, Margin, Tost, TostMethod, USUAL_POWER, moments,
    repetitions_needed, resolvable_difference_t, tost_power, tost_repetitions,
};

/// No campaign has more repetitions than this: a power that needs them is out of reach.
const MOST_REPETITIONS: u32 = 1_000;

/// The tests with what it would take to conclude.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EquivalenceTest {
    /// Both one-sided tests.
    pub tost: Tost,
    /// Repetitions of each arm for a power of 80 % if the arms do not differ and vary as these do; nothing when
    /// none varies or a thousand are not enough.
    pub repetitions_needed: Option<u32>,
}

impl EquivalenceTest {
    /// It says EQUIVALENT.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.tost.outcome == Equivalence::Equivalent
    }
}

/// Tests `cell` against `base` (the floor); nothing without a registered delta.
pub(super) fn equivalence(
    statistics: &StatisticsKeys,
    base: &CellAnalysis,
    cell: &CellAnalysis,
) -> Option<EquivalenceTest> {
    let margin = Margin { delta: statistics.delta?, alpha: statistics.alpha };
    let resolvable = resolvable_difference_t(&base.valid_fractions(), statistics.confidence);
    let (method, (first, second)) = match statistics.comparison {
        Method::Welch => (TostMethod::Welch, (counts(base), counts(cell))),
        Method::Paired => (TostMethod::Paired, blocks(base, cell)),
    };
    Some(EquivalenceTest {
        tost: tost_repetitions(&first, &second, method, margin, &resolvable),
        repetitions_needed: needed(statistics, margin, &first, &second),
    })
}

fn counts(cell: &CellAnalysis) -> Vec<Counts> {
    cell.valid_repetitions().map(|rep| rep.counts).collect()
}

/// Repetitions that are valid in both arms.
fn blocks(base: &CellAnalysis, cell: &CellAnalysis) -> (Vec<Counts>, Vec<Counts>) {
    let both = base.valid_repetitions().filter_map(|first| {
        let second = cell.valid_repetitions().find(|rep| rep.repetition == first.repetition)?;
        Some((first.counts, second.counts))
    });
    both.unzip()
}

fn needed(
    statistics: &StatisticsKeys,
    margin: Margin,
    first: &[Counts],
    second: &[Counts],
) -> Option<u32> {
    let fractions =
        |arm: &[Counts]| -> Vec<f64> { arm.iter().filter_map(|c| c.fraction()).collect() };
    let (a, b) = (fractions(first), fractions(second));
    let (design, sd) = match statistics.comparison {
        Method::Welch => {
            let (sd_a, sd_b) = (moments(&a)?.sd?, moments(&b)?.sd?);
            (Design::TwoSample, (sd_a * sd_a + sd_b * sd_b).sqrt() / std::f64::consts::SQRT_2)
        }
        Method::Paired => {
            let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
            (Design::Paired, moments(&differences)?.sd?)
        }
    };
    let power = |n| tost_power(design, n, sd, margin.delta, margin.alpha, 0.0);
    repetitions_needed(USUAL_POWER, MOST_REPETITIONS, power)
}
