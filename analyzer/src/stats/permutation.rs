//! Exact permutation tests: a check of a difference that assumes nothing but exchangeable repetitions.

use super::moments::moments;

/// Relabellings above which nothing is enumerated: 13 against 13 is 10.4 million.
const MAX_RELABELLINGS: u128 = 3_000_000;

/// Statistics this close, relative to the observed one, tie.
const SAME: f64 = 1e-12;

/// An exact two-sided p with how small it could have been.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExactP {
    /// Share of relabellings at least as extreme as the data.
    pub p: f64,
    /// Relabellings.
    pub relabellings: u64,
    /// Smallest p that this many repetitions can give, when no values tie.
    pub attainable: f64,
}

/// Difference of means over every way to give the repetitions to two arms of the same sizes.
///
/// `None` when an arm is empty or there are over three million ways.
#[must_use]
pub fn permutation_test(a: &[f64], b: &[f64]) -> Option<ExactP> {
    let observed = (moments(b)?.mean - moments(a)?.mean).abs();
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let relabellings = u64::try_from(choose(all.len(), a.len())?).ok()?;
    let total: f64 = all.iter().sum();
    let (n, m) = (a.len() as f64, b.len() as f64);
    let scale = all.iter().fold(observed, |scale, value| scale.max(value.abs()));
    let mut extreme = 0_u64;
    subsets(&all, a.len(), 0.0, &mut |sum| {
        let difference = ((total - sum) / m - sum / n).abs();
        extreme += u64::from(difference >= observed - SAME * scale);
    });
    let attainable = (if a.len() == b.len() { 2.0 } else { 1.0 }) / relabellings as f64;
    Some(ExactP { p: extreme as f64 / relabellings as f64, relabellings, attainable })
}

/// Mean of paired differences over every choice of their signs. Five pairs never go below 2/32.
///
/// `None` for no pairs or more than 20.
#[must_use]
pub fn sign_flip_test(differences: &[f64]) -> Option<ExactP> {
    let pairs = u32::try_from(differences.len()).ok().filter(|n| (1..=20).contains(n))?;
    moments(differences)?;
    let observed = differences.iter().sum::<f64>().abs();
    let scale: f64 = differences.iter().map(|value| value.abs()).sum();
    let relabellings = 1_u64 << pairs;
    let flipped = |signs: u64| -> f64 {
        let signed = differences.iter().enumerate();
        signed.map(|(i, value)| if signs >> i & 1 == 1 { -value } else { *value }).sum()
    };
    let extreme =
        (0..relabellings).filter(|s| flipped(*s).abs() >= observed - SAME * scale).count();
    Some(ExactP {
        p: extreme as f64 / relabellings as f64,
        relabellings,
        attainable: 2.0 / relabellings as f64,
    })
}

fn choose(n: usize, k: usize) -> Option<u128> {
    let mut ways = 1_u128;
    for i in 0..k.min(n - k) as u128 {
        ways = ways * (n as u128 - i) / (i + 1);
        if ways > MAX_RELABELLINGS {
            return None;
        }
    }
    Some(ways)
}

/// Sums of every subset of `left` values.
fn subsets(rest: &[f64], left: usize, sum: f64, visit: &mut impl FnMut(f64)) {
    if left == 0 {
        visit(sum);
        return;
    }
    for (i, value) in rest.iter().enumerate().take((rest.len() + 1).saturating_sub(left)) {
        subsets(&rest[i + 1..], left - 1, sum + value, visit);
    }
}
