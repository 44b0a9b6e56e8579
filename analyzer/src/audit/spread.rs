//! How requests lie on the backends: shares, and whether they go to them in turn.

use serde::Serialize;

use super::affinity::CONFIDENCE;
use super::fleet::Request;
use crate::stats::{Counts, wilson};

/// Shares within this part of the equal share are even.
const EVEN_WITHIN: f64 = 0.25;
/// Runs of as many requests as backends, per backend, below which turns can't be told from luck.
const MIN_RUNS_PER_BACKEND: u64 = 10;
/// Share of runs that must hold every backend once.
const MIN_IN_TURN: f64 = 0.9;

/// What is said about shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Evenness {
    /// Every share is the equal one, within a quarter of it.
    Even,
    /// One at least is not.
    Uneven,
    /// The evidence does not tell.
    Unknown,
}

impl Evenness {
    /// Its code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Even => "EVEN",
            Self::Uneven => "UNEVEN",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// A backend's share of the requests with its 95 % Wilson interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    pub(super) share: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Shares of `requests`, which are counts by backend; `None` without any request.
pub(super) fn shares(requests: &[u64]) -> Vec<Option<Share>> {
    let attempted: u64 = requests.iter().sum();
    let share = |good: &u64| {
        let counts = Counts { good: *good, attempted };
        let (low, high) = wilson(counts, CONFIDENCE).ends()?;
        Some(Share { share: counts.fraction()?, low, high })
    };
    requests.iter().map(share).collect()
}

/// Whether all shares are the equal one. The intervals hold together (Bonferroni).
pub(super) fn evenness(requests: &[u64]) -> Evenness {
    let attempted: u64 = requests.iter().sum();
    let backends = requests.len() as f64;
    if attempted == 0 || requests.len() < 2 {
        return Evenness::Unknown;
    }
    let (least, most) = ((1.0 - EVEN_WITHIN) / backends, (1.0 + EVEN_WITHIN) / backends);
    let confidence = 1.0 - (1.0 - CONFIDENCE) / backends;
    let interval = |good: &u64| {
        wilson(Counts { good: *good, attempted }, confidence).ends().unwrap_or((0.0, 1.0))
    };
    let intervals: Vec<(f64, f64)> = requests.iter().map(interval).collect();
    if intervals.iter().all(|(low, high)| *low >= least && *high <= most) {
        Evenness::Even
    } else if intervals.iter().any(|(low, high)| *high < least || *low > most) {
        Evenness::Uneven
    } else {
        Evenness::Unknown
    }
}

/// Farthest that a share may be from the equal one, by the intervals.
pub(super) fn equal_within(shares: &[Option<Share>]) -> Option<f64> {
    let equal = 1.0 / shares.len() as f64;
    let far =
        |share: &Option<Share>| share.map(|it| (it.high - equal).abs().max((equal - it.low).abs()));
    shares.iter().map(far).try_fold(0.0_f64, |most, far| far.map(|far| most.max(far)))
}

/// Whether successive requests go to all backends before any gets the next; keys are written in this
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct InTurn {
    /// Runs of as many successive requests as there are backends.
    pub runs: u64,
    /// Runs in which every backend got one.
    pub whole: u64,
    /// Share of such runs that independent choice with these shares would give.
    pub chance: f64,
    /// Requests go to the backends in turn.
    pub in_turn: bool,
}

/// Looks at requests in order of their first bytes.
pub(super) fn in_turn(requests: &[Request], backends: usize) -> Option<InTurn> {
    let order: Vec<usize> =
        requests.iter().filter(|it| it.at.is_some()).map(|it| it.backend).collect();
    if backends < 2 || order.len() < backends {
        return None;
    }
    let mut held = vec![0_u64; backends];
    let mut different = 0;
    let (mut runs, mut whole) = (0_u64, 0_u64);
    for (at, backend) in order.iter().enumerate() {
        different += usize::from(held[*backend] == 0);
        held[*backend] += 1;
        if at >= backends {
            let gone = order[at - backends];
            held[gone] -= 1;
            different -= usize::from(held[gone] == 0);
        }
        if at + 1 >= backends {
            runs += 1;
            whole += u64::from(different == backends);
        }
    }
    let share =
        |backend| order.iter().filter(|it| **it == backend).count() as f64 / order.len() as f64;
    // Orders of the backends times the probability of each.
    let chance: f64 = (0..backends).map(|backend| (backend + 1) as f64 * share(backend)).product();
    let enough = runs >= MIN_RUNS_PER_BACKEND * backends as u64;
    let in_turn = enough && whole as f64 >= MIN_IN_TURN * runs as f64 && chance < MIN_IN_TURN;
    Some(InTurn { runs, whole, chance, in_turn })
}
