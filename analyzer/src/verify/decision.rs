//! Decision proof: the gateway's own counters against what the arm claims to do.

use serde::{Deserialize, Serialize};

use super::code::{Code, Finding};
use crate::analyze::place;
use crate::campaign::ArmKeys;
use crate::evidence::Repetition;
use crate::rundir::{Counter, CounterDelta, GatewayFile, SeriesFamily};

/// Whether a proof holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// The evidence confirms the claim.
    Holds,
    /// The evidence contradicts the claim.
    Failed,
    /// There is no evidence.
    Unknown,
    /// The campaign asks for none.
    NotAsked,
}

/// The counters of one arm over its measured repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionProof {
    /// Name of the arm.
    pub arm: String,
    /// Whether it holds.
    pub proof: Proof,
    /// Requests routed by prefix; nothing when the series is absent in any repetition.
    pub hits: Option<f64>,
    /// Requests that could not be; nothing when the series is absent in any repetition.
    pub misses: Option<f64>,
    /// Measured repetitions of the arm.
    pub repetitions: u64,
    /// Of these, without the series of hits.
    pub without_hits: u64,
    /// Of these, without the series of misses.
    pub without_misses: u64,
    /// Requests attempted.
    pub requests: u64,
    /// Of these, with a prefix that was sent before in the same repetition.
    pub repeated_prefix_requests: Option<u64>,
    /// Least hits / repeated-prefix requests.
    pub min_hit_share: Option<f64>,
    /// Largest misses / requests.
    pub max_miss_share: Option<f64>,
    /// The mode that the gateway's log names.
    pub reported_mode: Option<String>,
}

impl DecisionProof {
    pub(super) fn of(arm: &ArmKeys, repetitions: &[&Repetition]) -> Self {
        let files: Vec<&GatewayFile> =
            repetitions.iter().filter_map(|rep| rep.gateway.as_ref()).collect();
        let repeated = match files.len() == repetitions.len() {
            true => files.iter().map(|file| file.repeated_prefix_requests).sum(),
            false => None,
        };
        let hits = Total::of(repetitions, SeriesFamily::HITS);
        let misses = Total::of(repetitions, SeriesFamily::MISSES);
        let mut proof = Self {
            arm: arm.name.clone(),
            proof: Proof::NotAsked,
            repetitions: repetitions.len() as u64,
            without_hits: hits.unknown,
            without_misses: misses.unknown,
            hits: hits.known(),
            misses: misses.known(),
            requests: repetitions.iter().map(|rep| rep.schedule.len() as u64).sum(),
            repeated_prefix_requests: repeated,
            min_hit_share: arm.min_hit_share,
            max_miss_share: arm.max_miss_share,
            reported_mode: files.iter().rev().find_map(|file| file.readback_after.lb_mode.clone()),
        };
        proof.proof = proof.judge();
        proof
    }

    fn judge(&self) -> Proof {
        let hits = self.min_hit_share.map(|least| {
            let share = quotient(self.hits?, self.repeated_prefix_requests? as f64)?;
            Some(share >= least)
        });
        let misses = self.max_miss_share.map(|most| {
            let share = quotient(self.misses?, self.requests as f64)?;
            Some(share <= most)
        });
        let asked: Vec<Option<bool>> = [hits, misses].into_iter().flatten().collect();
        match asked.as_slice() {
            [] => Proof::NotAsked,
            asked if asked.contains(&Some(false)) => Proof::Failed,
            asked if asked.contains(&None) => Proof::Unknown,
            _ => Proof::Holds,
        }
    }

    pub(super) fn finding(&self, shares: &str) -> Option<Finding> {
        let code = match self.proof {
            Proof::Failed => Code::DecisionFailed,
            Proof::Unknown => Code::DecisionUnknown,
            Proof::Holds | Proof::NotAsked => return None,
        };
        let known = |value: Option<f64>| value.map_or("absent".to_owned(), |n| format!("{n}"));
        let (n, repeated) = (self.requests, known(self.repeated_prefix_requests.map(|n| n as f64)));
        let mode = self.reported_mode.as_deref().unwrap_or("none");
        let hits = match self.hits {
            Some(hits) => {
                format!("tier-1.5 hits advanced by {hits} of {repeated} repeated prefixes")
            }
            None => format!(
                "tier-1.5 hits {} for {repeated} repeated prefixes",
                self.absence(self.without_hits)
            ),
        };
        let misses = match self.misses {
            Some(misses) => format!("misses climbed by {misses} of {n}"),
            None => format!("misses {}", self.absence(self.without_misses)),
        };
        let meaning = match self.proof {
            Proof::Failed if self.frozen() => "neither moved, and frozen counters prove no routing",
            Proof::Failed => "it fell back, and what was measured is the fallback",
            _ => "the counters are needed to tell",
        };
        let detail = format!(
            "arm {}: the gateway reports LB mode {mode}, but {hits} while {misses}: {meaning}{shares}",
            self.arm
        );
        Some(Finding::new(code, place(&self.arm, None, None), detail))
    }
}

impl DecisionProof {
    fn frozen(&self) -> bool {
        (self.hits, self.misses) == (Some(0.0), Some(0.0)) && self.requests > 0
    }

    fn absence(&self, without: u64) -> String {
        match without == self.repetitions {
            true => "never appeared".to_owned(),
            false => format!("are absent from {without} of {} repetitions", self.repetitions),
        }
    }
}

fn quotient(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// A family of counters summed over repetitions.
struct Total {
    sum: f64,
    unknown: u64,
    repetitions: usize,
}

impl Total {
    fn of(repetitions: &[&Repetition], family: SeriesFamily) -> Self {
        let start = Self { sum: 0.0, unknown: 0, repetitions: repetitions.len() };
        repetitions.iter().fold(start, |total, rep| match delta(rep, family) {
            CounterDelta::Value(value) => Self { sum: total.sum + value, ..total },
            CounterDelta::Unknown => Self { unknown: total.unknown + 1, ..total },
        })
    }

    /// Nothing when any repetition is unknown: its requests are in the denominator, and taking its counters
    /// for 0 would turn missing knowledge into a contradiction, or into a proof.
    fn known(&self) -> Option<f64> {
        (self.unknown == 0 && self.repetitions > 0).then_some(self.sum)
    }
}

fn delta(rep: &Repetition, family: SeriesFamily) -> CounterDelta {
    rep.gateway.as_ref().map_or(CounterDelta::Unknown, |file| {
        (Counter { before: &file.before, after: &file.after }).delta(family)
    })
}
