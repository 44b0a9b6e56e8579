//! The same requests in two arms: paired outcomes, request by request.

use super::Interval;
use super::distribution::chi2_upper;
use super::incomplete_beta::binomial_cdf;
use super::proportion::{Counts, wilson};

/// Requests by outcome in a first and a second arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairedCounts {
    /// Good in both.
    pub both: u64,
    /// Good in the first arm only.
    pub first_only: u64,
    /// Good in the second arm only.
    pub second_only: u64,
    /// Good in neither.
    pub neither: u64,
}

/// McNemar's test of "the arms do not differ".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct McNemar {
    /// Exact two-sided p.
    pub exact_p: f64,
    /// Chi-square with continuity correction.
    pub chi2: f64,
    /// Its p.
    pub p: f64,
}

/// Newcombe's hybrid score interval of first minus second for paired proportions (Stat. Med. 17:2635, 1998,
/// method 10).
#[must_use]
pub fn newcombe_paired(counts: PairedCounts, confidence: f64) -> Interval {
    let PairedCounts { both, first_only, second_only, neither } = counts;
    let n = both + first_only + second_only + neither;
    let first = Counts { good: both + first_only, attempted: n };
    let second = Counts { good: both + second_only, attempted: n };
    let ends = wilson(first, confidence).ends().zip(wilson(second, confidence).ends());
    let (Some(((l1, u1), (l2, u2))), Some(p1), Some(p2)) =
        (ends, first.fraction(), second.fraction())
    else {
        return Interval::TooFew { have: 0, need: 1 };
    };
    let correlation = correlation(counts);
    let reach = |a: f64, b: f64| (a * a - 2.0 * correlation * a * b + b * b).max(0.0).sqrt();
    let difference = p1 - p2;
    Interval::Interval {
        low: difference - reach(p1 - l1, u2 - p2),
        high: difference + reach(u1 - p1, p2 - l2),
        confidence,
    }
}

/// phi of the table, corrected for continuity when positive; 0 where a margin is empty.
fn correlation(counts: PairedCounts) -> f64 {
    let [e, f, g, h] = [counts.both, counts.first_only, counts.second_only, counts.neither]
        .map(|count| count as f64);
    let margins = (e + f) * (g + h) * (e + g) * (f + h);
    let product = e * h - f * g;
    let corrected = match product > 0.0 {
        true => (product - (e + f + g + h) / 2.0).max(0.0),
        false => product,
    };
    if margins > 0.0 { corrected / margins.sqrt() } else { 0.0 }
}

/// McNemar's test; `None` when no request differs between the arms.
#[must_use]
pub fn mcnemar(counts: PairedCounts) -> Option<McNemar> {
    let (f, g) = (counts.first_only, counts.second_only);
    let discordant = f + g;
    if discordant == 0 {
        return None;
    }
    let exact_p = (2.0 * binomial_cdf(f.min(g), discordant, 0.5)?).min(1.0);
    let chi2 = (f.abs_diff(g) as f64 - 1.0).max(0.0).powi(2) / discordant as f64;
    Some(McNemar { exact_p, chi2, p: chi2_upper(chi2, 1.0)? })
}
