//! Uncertainty of the knee: whole repetitions are resampled jointly over all rates, every resample counted.

use super::isotonic::isotonic_decreasing;
use super::knee::LadderRung;
use super::multiset::{MAX_ENUMERATED, multisets};
use super::proportion::Counts;

/// How often each rate is the knee.
#[derive(Clone, Debug, PartialEq)]
pub struct KneeLaw {
    /// Resamples in which no rate meets the target: the knee lies below the ladder.
    pub below: u64,
    /// Each rate with the resamples in which it is the knee. The last one is censored: at least.
    pub rates: Vec<(f64, u64)>,
    /// All resamples.
    pub total: u64,
}

impl KneeLaw {
    /// Rates between which the knee lies in at least `confidence` of the resamples; `None` as lower end is
    /// below the ladder.
    #[must_use]
    pub fn percentile(&self, confidence: f64) -> (Option<f64>, Option<f64>) {
        let tail = (1.0 - confidence) / 2.0;
        (self.quantile(tail), self.quantile(1.0 - tail))
    }

    fn quantile(&self, p: f64) -> Option<f64> {
        let wanted = p * self.total as f64 - 1e-9;
        let mut seen = self.below as f64;
        let mut at = None;
        for (rate, weight) in &self.rates {
            if seen >= wanted && seen > 0.0 {
                break;
            }
            seen += *weight as f64;
            at = Some(*rate).filter(|_| *weight > 0).or(at);
        }
        at
    }
}

/// The isotonic knee over every joint resample of the repetitions.
///
/// `None` unless every rung holds the same 2 to 12 repetitions, each with requests.
#[must_use]
pub fn knee_bootstrap(ladder: &[LadderRung], target: f64) -> Option<KneeLaw> {
    let groups = ladder.first()?.repetitions.len();
    let same = |rung: &LadderRung| rung.repetitions.len() == groups;
    let attempted = |rung: &LadderRung| rung.repetitions.iter().all(|rep| rep.attempted > 0);
    if !(2..=MAX_ENUMERATED).contains(&groups) || !ladder.iter().all(|r| same(r) && attempted(r)) {
        return None;
    }
    let mut law = KneeLaw {
        below: 0,
        rates: ladder.iter().map(|rung| (rung.rate_rps, 0)).collect(),
        total: 0,
    };
    multisets(groups, |counts, weight| {
        let resampled: Vec<Counts> = ladder.iter().map(|rung| drawn(rung, counts)).collect();
        let curve = isotonic_decreasing(&resampled).unwrap_or_default();
        law.total += weight;
        match curve.iter().rposition(|p| *p >= target) {
            Some(knee) => law.rates[knee].1 += weight,
            None => law.below += weight,
        }
    });
    Some(law)
}

fn drawn(rung: &LadderRung, counts: &[usize]) -> Counts {
    let times = rung.repetitions.iter().zip(counts);
    times.fold(Counts::default(), |sum, (rep, times)| {
        let times = *times as u64;
        sum.plus(Counts { good: rep.good * times, attempted: rep.attempted * times })
    })
}
