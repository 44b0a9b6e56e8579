//! One cell: an arm at a rate, over its valid repetitions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::breakdown::ByLength;
use super::good::{Bounds, Mask};
use super::latency::{Latency, WithinRunIntervals, latency};
use super::repetition::{RepetitionAnalysis, TokenShare, reduce};
use super::sensitivity::{SloPoint, sensitivity};
use crate::campaign::ArmKeys;
use crate::evidence::{Evidence, Repetition};
use crate::join::{CrossCheck, Judge, join};
use crate::records::RequestRecord;
use crate::rundir::cell_name;
use crate::stats::{
    Counts, Cv, Dispersion, Interval, cv, cv_binomial_floor, overdispersion, t_interval, wilson,
};
use crate::verify::copies::place_of;
use crate::verify::gates::{Context, gates};

/// One cell, reduced. Every figure but `repetitions` is over valid repetitions only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellAnalysis {
    /// Offered rate, requests per second.
    pub rate_rps: f64,
    /// Every recorded repetition.
    pub repetitions: Vec<RepetitionAnalysis>,
    /// How many are valid.
    pub valid: usize,
    /// Good and attempted, pooled.
    pub counts: Counts,
    /// good / attempted; nothing without a valid repetition.
    pub good_fraction: Option<f64>,
    /// The same under the other single-token policy, when requests without a TPOT exist.
    pub good_fraction_other_policy: Option<f64>,
    /// Requests by outcome class; they sum to attempted.
    pub classes: BTreeMap<String, u64>,
    /// Good and attempted by planned length.
    pub by_length: ByLength,
    /// Good-fraction under other bounds: exploratory.
    pub slo_sensitivity: Vec<SloPoint>,
    /// The published interval: t over repetitions.
    pub interval_t: Interval,
    /// Wilson over pooled requests: stands in when repetitions do not vary.
    pub interval_wilson: Interval,
    /// Variation of the good-fraction over repetitions.
    pub cv: Cv,
    /// The same of the miss fraction: at a high good-fraction the first one is blind.
    pub cv_of_miss: Cv,
    /// The CV that binomial noise alone gives at this size.
    pub cv_binomial_floor: Option<f64>,
    /// Good requests per second of schedule and accelerator.
    pub goodput_per_accelerator: Option<f64>,
    /// The same with the drain in the denominator.
    pub goodput_incl_drain_per_accelerator: Option<f64>,
    /// Prompt tokens and cached ones.
    pub tokens: TokenShare,
    /// cached / prompt tokens.
    pub prefix_hit_share: Option<f64>,
    /// Whether repetitions scatter as their requests alone would make them; nothing below two of them, or
    /// where all or no requests are good.
    pub dispersion: Option<Dispersion>,
    /// Latency for display.
    pub latency: Latency,
    /// Intervals of it that take requests for independent.
    pub within_run_iid: WithinRunIntervals,
}

impl CellAnalysis {
    /// Good-fraction of each valid repetition, in order.
    #[must_use]
    pub fn valid_fractions(&self) -> Vec<f64> {
        self.valid_repetitions().filter_map(|rep| rep.counts.fraction()).collect()
    }

    /// The valid repetitions.
    pub fn valid_repetitions(&self) -> impl Iterator<Item = &RepetitionAnalysis> {
        self.repetitions.iter().filter(|rep| rep.valid)
    }
}

pub(super) fn analyze(
    evidence: &Evidence,
    copies: &BTreeMap<String, String>,
    arm: &ArmKeys,
    rate_rps: f64,
) -> CellAnalysis {
    let recorded: Vec<&Repetition> = evidence.cell(&arm.name, rate_rps).collect();
    let repetitions: Vec<RepetitionAnalysis> =
        recorded.iter().map(|rep| repetition(evidence, copies, arm, rep)).collect();
    let valid: Vec<&RepetitionAnalysis> = repetitions.iter().filter(|rep| rep.valid).collect();
    let counts = valid.iter().fold(Counts::default(), |sum, rep| sum.plus(rep.counts));
    let fractions: Vec<f64> = valid.iter().filter_map(|rep| rep.counts.fraction()).collect();
    let misses: Vec<f64> = fractions.iter().map(|fraction| 1.0 - fraction).collect();
    let tokens = valid.iter().fold(TokenShare::default(), |sum, rep| sum.plus(rep.tokens));
    let per_second = |wall: &dyn Fn(&RepetitionAnalysis) -> u64| {
        let seconds = valid.iter().map(|rep| u128::from(wall(rep))).sum::<u128>() as f64 / 1e9;
        (seconds > 0.0).then(|| counts.good as f64 / seconds / arm.accelerators as f64)
    };
    let confidence = evidence.campaign.keys().statistics.confidence;
    let of_valid = recorded.iter().zip(&repetitions).filter(|(_, analysis)| analysis.valid);
    let records: Vec<&Repetition> = of_valid.map(|(rep, _)| *rep).collect();
    let (latency, within_run_iid) =
        latency(records.iter().flat_map(|rep| &rep.requests), confidence);
    let (bounds, policy) =
        (Bounds::from(&evidence.slo), evidence.campaign.keys().statistics.single_token);
    let per_repetition = counts.attempted / (valid.len() as u64).max(1);
    CellAnalysis {
        rate_rps,
        valid: valid.len(),
        counts,
        good_fraction: counts.fraction(),
        good_fraction_other_policy: other_policy(&valid),
        classes: classes(&valid),
        by_length: ByLength::of(&records, bounds, policy),
        slo_sensitivity: sensitivity(&records, bounds, policy),
        interval_t: t_interval(&fractions, confidence),
        interval_wilson: wilson(counts, confidence),
        cv: cv(&fractions),
        cv_of_miss: cv(&misses),
        cv_binomial_floor: counts.fraction().and_then(|p| cv_binomial_floor(p, per_repetition)),
        goodput_per_accelerator: per_second(&|rep| rep.wall_ns),
        goodput_incl_drain_per_accelerator: per_second(&|rep| rep.wall_incl_drain_ns),
        tokens,
        prefix_hit_share: tokens.share(),
        dispersion: overdispersion(&valid.iter().map(|rep| rep.counts).collect::<Vec<_>>()),
        latency,
        within_run_iid,
        repetitions,
    }
}

/// Requests without a TPOT counted the other way; where a repetition has none, both ways are one.
fn other_policy(valid: &[&RepetitionAnalysis]) -> Option<f64> {
    if valid.iter().all(|rep| rep.without_tpot == 0) {
        return None;
    }
    let other = valid.iter().fold(Counts::default(), |sum, rep| {
        let good = rep.good_other_policy.unwrap_or(rep.counts.good);
        sum.plus(Counts { good, ..rep.counts })
    });
    other.fraction()
}

fn classes(valid: &[&RepetitionAnalysis]) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for (class, n) in valid.iter().flat_map(|rep| &rep.classes) {
        *sum.entry(class.clone()).or_insert(0) += n;
    }
    sum
}

/// Validity first: the gates run before any statistic.
fn repetition(
    evidence: &Evidence,
    copies: &BTreeMap<String, String>,
    arm: &ArmKeys,
    rep: &Repetition,
) -> RepetitionAnalysis {
    let keys = evidence.campaign.keys();
    let crosscheck = join(&rep.requests, &rep.observed, judge(evidence));
    let floor = evidence.campaign.floor();
    let floor_schedule = evidence
        .cell(&floor.name, rep.place.rate_rps)
        .find(|other| other.place.repetition == rep.place.repetition)
        .map(|other| other.run.schedule_sha256.as_str());
    let imported = keys.imported.is_some();
    let (rate, number) = (rep.place.rate_rps, rep.place.repetition);
    // Other tools draw a schedule of its own for each arm.
    let registered = match imported {
        true => format!("{}/rep{number}", cell_name(&arm.name, rate)),
        false => format!("r{rate}/rep{number}"),
    };
    let context = Context {
        slo: &evidence.slo,
        thresholds: &keys.thresholds,
        statistics: &keys.statistics,
        readiness: evidence.readiness.as_deref().unwrap_or_default(),
        backends: &keys.backend,
        vip: &arm.vip,
        floor_schedule: floor_schedule.filter(|_| !imported),
        agents: if evidence.manifest.without_agent { &[] } else { &keys.agent },
        seed: keys.seed,
        registered_schedule: evidence.manifest.schedules.get(&registered).map(String::as_str),
        imported,
        copy: copies.get(&place_of(rep)).map(String::as_str),
    };
    let findings = gates(rep, &crosscheck, &context);
    let mask = Mask::of(&rep.schedule, &rep.requests, Bounds::from(&evidence.slo));
    reduce(rep, mask, keys.statistics.single_token, crosscheck, findings)
}

fn judge(evidence: &Evidence) -> Judge {
    Judge { ttft_ns: evidence.slo.ttft_ns, tpot_ns: evidence.slo.tpot_ns }
}

/// Client against kernel over every repetition of an arm, valid or not: an invalid one still shows
/// whether the two records agree.
pub(super) fn arm_crosscheck(evidence: &Evidence, arm: &ArmKeys) -> CrossCheck {
    let of_arm: Vec<&Repetition> =
        evidence.repetitions.iter().filter(|rep| rep.place.arm == arm.name).collect();
    let requests: Vec<RequestRecord> =
        of_arm.iter().flat_map(|rep| rep.requests.iter().cloned()).collect();
    let observed: Vec<_> = of_arm.iter().flat_map(|rep| rep.observed.iter().cloned()).collect();
    join(&requests, &observed, judge(evidence))
}
