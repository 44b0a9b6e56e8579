//! Two one-sided tests of equivalence (Schuirmann 1987). The margin is pre-registered: one derived from the noise
//! of the same data would make parity easier the noisier they are.

use serde::{Deserialize, Serialize};

use super::Interval;
use super::difference::{Difference, paired, welch};
use super::distribution::t_cdf;
use super::noise::HalfWidth;
use super::proportion::{Counts, newcombe};

/// What was registered before the data existed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Margin {
    /// Largest difference that counts as none, in the unit of the data.
    pub delta: f64,
    /// Level of each one-sided test.
    pub alpha: f64,
}

impl Margin {
    /// The tests reject at alpha exactly when the interval of this confidence lies inside the margin: 90 % for
    /// an alpha of 0.05.
    #[must_use]
    pub fn confidence(self) -> f64 {
        1.0 - 2.0 * self.alpha
    }

    fn usable(self) -> bool {
        self.delta > 0.0 && self.delta.is_finite() && self.alpha > 0.0 && self.alpha < 0.5
    }
}

/// What the tests say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Equivalence {
    /// The whole interval lies strictly inside the margin.
    Equivalent,
    /// The whole interval lies beyond the margin, on one side.
    Different,
    /// Neither, although the data could have told.
    Inconclusive,
    /// Neither, and the margin is smaller than what these repetitions resolve: no statement about parity.
    InconclusiveUnderpowered,
    /// Too few repetitions, or no usable margin.
    NotComparable,
}

impl Equivalence {
    /// The word as printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Equivalent => "EQUIVALENT",
            Self::Different => "DIFFERENT",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::InconclusiveUnderpowered => "INCONCLUSIVE_UNDERPOWERED",
            Self::NotComparable => "NOT_COMPARABLE",
        }
    }
}

/// How the interval was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TostMethod {
    /// Welch over repetitions.
    Welch,
    /// t over differences of paired repetitions.
    Paired,
    /// Newcombe over pooled requests.
    Newcombe,
}

/// Both tests with everything needed to redo them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tost {
    /// Margin and level.
    pub margin: Margin,
    /// How the interval was made.
    pub method: TostMethod,
    /// Second sample's mean minus the first one's.
    pub estimate: Option<f64>,
    /// p against "the difference is -delta or less"; nothing without a t statistic.
    pub p_lower: Option<f64>,
    /// p against "the difference is delta or more".
    pub p_upper: Option<f64>,
    /// The 1 - 2 alpha interval.
    pub interval: Interval,
    /// What the repetitions resolve.
    pub resolvable_difference: Option<f64>,
    /// What it says.
    pub outcome: Equivalence,
    /// Why another method than the registered one was used.
    pub note: Option<String>,
}

impl Tost {
    /// The larger of both p, the p of the joint test.
    #[must_use]
    pub fn p_value(&self) -> Option<f64> {
        Some(self.p_lower?.max(self.p_upper?))
    }
}

/// Equivalence of two independent samples of repetition-level figures, `b` minus `a`.
#[must_use]
pub fn tost_welch(a: &[f64], b: &[f64], margin: Margin, resolvable: &HalfWidth) -> Tost {
    let difference = welch(a, b, margin.confidence());
    from_difference(difference.as_ref(), TostMethod::Welch, margin, resolvable)
}

/// Equivalence over the differences of paired repetitions, `b[i]` minus `a[i]`.
#[must_use]
pub fn tost_paired(a: &[f64], b: &[f64], margin: Margin, resolvable: &HalfWidth) -> Tost {
    let difference = paired(a, b, margin.confidence());
    from_difference(difference.as_ref(), TostMethod::Paired, margin, resolvable)
}

/// Equivalence of two pooled proportions by Newcombe's interval, `b` minus `a`.
#[must_use]
pub fn tost_newcombe(a: Counts, b: Counts, margin: Margin) -> Tost {
    let interval = newcombe(a, b, margin.confidence());
    let estimate = a.fraction().zip(b.fraction()).map(|(first, second)| second - first);
    Tost {
        margin,
        method: TostMethod::Newcombe,
        estimate,
        p_lower: None,
        p_upper: None,
        resolvable_difference: interval.half_width(),
        outcome: judge(&interval, margin, interval.half_width()),
        interval,
        note: None,
    }
}

/// Equivalence over repetitions, or over pooled requests where no repetition varies and t does not exist.
#[must_use]
pub fn tost_repetitions(
    a: &[Counts],
    b: &[Counts],
    method: TostMethod,
    margin: Margin,
    resolvable: &HalfWidth,
) -> Tost {
    let fractions =
        |arm: &[Counts]| -> Vec<f64> { arm.iter().filter_map(|c| c.fraction()).collect() };
    let (first, second) = (fractions(a), fractions(b));
    let over_repetitions = match method {
        TostMethod::Welch => tost_welch(&first, &second, margin, resolvable),
        TostMethod::Paired => tost_paired(&first, &second, margin, resolvable),
        TostMethod::Newcombe => return tost_newcombe(pooled(a), pooled(b), margin),
    };
    if !matches!(over_repetitions.interval, Interval::Degenerate { .. }) {
        return over_repetitions;
    }
    let note = "no repetition varies: Newcombe's interval over pooled requests".to_owned();
    Tost { note: Some(note), ..tost_newcombe(pooled(a), pooled(b), margin) }
}

fn pooled(arm: &[Counts]) -> Counts {
    arm.iter().fold(Counts::default(), |sum, counts| sum.plus(*counts))
}

fn from_difference(
    difference: Option<&Difference>,
    method: TostMethod,
    margin: Margin,
    resolvable: &HalfWidth,
) -> Tost {
    let interval = difference
        .map_or(Interval::TooFew { have: 0, need: 2 }, |difference| difference.interval.clone());
    // Without a baseline of its own the comparison's half width is what can be resolved.
    let resolvable = resolvable.value().or_else(|| interval.half_width());
    let shifted = |by: f64, sign: f64| {
        let difference = difference?;
        let t = (difference.estimate + by) / difference.standard_error?;
        t_cdf(sign * t, difference.df?)
    };
    Tost {
        margin,
        method,
        estimate: difference.map(|difference| difference.estimate),
        p_lower: shifted(margin.delta, -1.0),
        p_upper: shifted(-margin.delta, 1.0),
        resolvable_difference: resolvable,
        outcome: judge(&interval, margin, resolvable),
        interval,
        note: None,
    }
}

/// Strict at the edge: an interval that touches the margin is not inside it.
fn judge(interval: &Interval, margin: Margin, resolvable: Option<f64>) -> Equivalence {
    let Some((low, high)) = interval.ends().filter(|_| margin.usable()) else {
        return Equivalence::NotComparable;
    };
    if low > -margin.delta && high < margin.delta {
        Equivalence::Equivalent
    } else if low >= margin.delta || high <= -margin.delta {
        Equivalence::Different
    } else if resolvable.is_some_and(|resolvable| margin.delta < resolvable) {
        Equivalence::InconclusiveUnderpowered
    } else {
        Equivalence::Inconclusive
    }
}
