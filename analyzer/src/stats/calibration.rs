//! Do the published intervals keep their promise? Simulated repetitions with known truth, seeded.
//!
//! Requests of a repetition are alike by an intra-repetition correlation: the repetition's chance of a good request
//! is drawn from a beta distribution, and its good requests from a binomial one.

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Beta, Binomial, Distribution as _};
use serde::{Deserialize, Serialize};

use super::{
    Counts, Equivalence, HalfWidth, Interval, Margin, QuantileType, TostMethod, cluster_bootstrap,
    t_interval, tost_repetitions, welch, wilson,
};

/// Coverage of a 95 % interval that counts as kept.
pub const COVERAGE_BOUNDS: (f64, f64) = (0.93, 0.97);
/// Largest share of wins declared where nothing differs; 0.025 by construction.
pub const FALSE_WINS_BOUND: f64 = 0.035;
/// Largest share of EQUIVALENT declared where the true difference is the margin.
pub const FALSE_EQUIVALENT_BOUND: f64 = 0.05;

/// Chance of a good request.
const TRUE_FRACTION: f64 = 0.9;
/// Requests of a repetition.
const REQUESTS: u64 = 400;
/// The pre-registered margin.
const DELTA: f64 = 0.02;
/// Campaigns whose bootstrap is enumerated: at ten repetitions each counts 92,378 resamples.
const BOOTSTRAPPED: u32 = 1_000;
const CONFIDENCE: f64 = 0.95;
const ALPHA: f64 = 0.05;

/// What is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Repetitions of each arm.
    pub repetitions: usize,
    /// Intra-repetition correlation of good requests; 0 for independent ones.
    pub correlation: f64,
}

/// Shares over all simulated campaigns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// What was simulated.
    pub scenario: Scenario,
    /// Simulated campaigns.
    pub campaigns: u32,
    /// The published interval (t over repetitions; Wilson where none varies) holds the truth.
    pub coverage_published: f64,
    /// The percentile bootstrap over repetitions does, over the first thousand campaigns: shown, never gated.
    pub coverage_bootstrap: f64,
    /// Wilson over pooled requests does: shown, never gated.
    pub coverage_pooled: f64,
    /// A win is declared between equal arms.
    pub false_wins: f64,
    /// EQUIVALENT is declared at a true difference of the margin.
    pub false_equivalent: f64,
    /// All three bounds hold.
    pub passed: bool,
}

/// Simulates `campaigns` campaigns of one scenario. The same seed gives the same figures everywhere.
#[must_use]
pub fn calibrate(scenario: Scenario, campaigns: u32, seed: u64) -> Calibrated {
    let mut hits = [0_u32; 5];
    for number in 0..campaigns {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(u64::from(number));
        let outcomes = one(scenario, number < BOOTSTRAPPED, &mut generator);
        hits.iter_mut().zip(outcomes).for_each(|(hits, outcome)| *hits += u32::from(outcome));
    }
    let share = |hits: u32, of: u32| f64::from(hits) / f64::from(of.max(1));
    let bootstrap = share(hits[1], campaigns.min(BOOTSTRAPPED));
    let [published, _, pooled, wins, equivalent] = hits.map(|hits| share(hits, campaigns));
    Calibrated {
        scenario,
        campaigns,
        coverage_published: published,
        coverage_bootstrap: bootstrap,
        coverage_pooled: pooled,
        false_wins: wins,
        false_equivalent: equivalent,
        passed: (COVERAGE_BOUNDS.0..=COVERAGE_BOUNDS.1).contains(&published)
            && wins <= FALSE_WINS_BOUND
            && equivalent <= FALSE_EQUIVALENT_BOUND,
    }
}

fn one(scenario: Scenario, with_bootstrap: bool, generator: &mut ChaCha8Rng) -> [bool; 5] {
    let mut arm = |p: f64| -> Vec<Counts> {
        (0..scenario.repetitions).map(|_| repetition(p, scenario.correlation, generator)).collect()
    };
    let (floor, same, worse) = (arm(TRUE_FRACTION), arm(TRUE_FRACTION), arm(TRUE_FRACTION - DELTA));
    let pooled = floor.iter().fold(Counts::default(), |sum, rep| sum.plus(*rep));
    let pooled = wilson(pooled, CONFIDENCE);
    let published = match t_interval(&fractions(&floor), CONFIDENCE) {
        Interval::Degenerate { .. } => pooled.clone(),
        interval => interval,
    };
    let bootstrap = with_bootstrap
        .then(|| cluster_bootstrap(&floor))
        .flatten()
        .map(|bootstrap| bootstrap.percentile(CONFIDENCE, QuantileType::Linear));
    let win = welch(&fractions(&floor), &fractions(&same), CONFIDENCE)
        .and_then(|difference| difference.interval.ends())
        .is_some_and(|(low, _)| low > 0.0);
    let margin = Margin { delta: DELTA, alpha: ALPHA };
    let unknown = HalfWidth::NotAttainable { reason: "simulated".to_owned() };
    let test = tost_repetitions(&floor, &worse, TostMethod::Welch, margin, &unknown);
    [
        holds(&published),
        bootstrap.is_some_and(|interval| holds(&interval)),
        holds(&pooled),
        win,
        test.outcome == Equivalence::Equivalent,
    ]
}

fn holds(interval: &Interval) -> bool {
    interval.ends().is_some_and(|(low, high)| low <= TRUE_FRACTION && TRUE_FRACTION <= high)
}

fn fractions(arm: &[Counts]) -> Vec<f64> {
    arm.iter().filter_map(|counts| counts.fraction()).collect()
}

fn repetition(p: f64, correlation: f64, generator: &mut ChaCha8Rng) -> Counts {
    let shape = 1.0 / correlation - 1.0;
    let chance = Beta::new(p * shape, (1.0 - p) * shape)
        .ok()
        .filter(|_| correlation > 0.0)
        .map_or(p, |beta| beta.sample(generator));
    let good = Binomial::new(REQUESTS, chance).map_or(0, |binomial| binomial.sample(generator));
    Counts { good, attempted: REQUESTS }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(correlation: f64) -> Calibrated {
        calibrate(Scenario { repetitions: 5, correlation }, 1_500, 1)
    }

    #[test]
    fn the_published_interval_keeps_its_promise_and_pooling_does_not() {
        for correlation in [0.0, 0.02] {
            let figures = run(correlation);
            assert!(figures.passed, "{figures:?}");
            assert!(figures.coverage_bootstrap < 0.90, "{figures:?}");
        }
        assert!(run(0.02).coverage_pooled < 0.60);
    }

    #[test]
    fn the_seed_decides_everything() {
        let scenario = Scenario { repetitions: 3, correlation: 0.02 };
        assert_eq!(calibrate(scenario, 50, 1), calibrate(scenario, 50, 1));
        assert_ne!(calibrate(scenario, 500, 1), calibrate(scenario, 500, 2));
    }
}
