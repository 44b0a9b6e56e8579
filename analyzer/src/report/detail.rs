//! What stands behind the headline figures: the certified knee, latency with intervals, equivalence.

use super::figures::{ends, fixed, percent};
use crate::analyze::{AnalysisFile, ArmAnalysis, CellAnalysis, Comparison, SloPoint};
use crate::stats::{DispersionWord, LadderRate, QuantileInterval};

/// One line per arm, and one for each cell whose repetitions scatter otherwise than requests would.
pub(super) fn knees(analysis: &AnalysisFile) -> Vec<String> {
    let of_arm = |arm: &ArmAnalysis| {
        let mut lines = vec![certified(arm)];
        lines.extend(arm.knee.tested.rung().and_then(|rung| {
            let cell =
                arm.cells.iter().find(|cell| cell.rate_rps.total_cmp(&rung.rate_rps).is_eq())?;
            latency(&arm.name, cell)
        }));
        lines.extend(arm.knee.tested.rung().and_then(|rung| sensitivity(arm, rung.rate_rps)));
        lines.extend(arm.cells.iter().filter_map(|cell| dispersion(&arm.name, cell)));
        lines
    };
    analysis.arms.iter().flat_map(of_arm).collect()
}

/// The good-fraction at the knee when both bounds move together.
fn sensitivity(arm: &ArmAnalysis, rate_rps: f64) -> Option<String> {
    let cell = arm.cells.iter().find(|cell| cell.rate_rps.total_cmp(&rate_rps).is_eq())?;
    let both = |point: &&SloPoint| point.ttft_multiple.total_cmp(&point.tpot_multiple).is_eq();
    let points = cell.slo_sensitivity.iter().filter(both);
    let words: Vec<String> = points
        .map(|point| format!("{} x: {}", point.ttft_multiple, fixed(point.good_fraction, 4)))
        .collect();
    Some(format!(
        "good-fraction {} at {rate_rps} rps if both SLOs were {} (exploratory)",
        arm.name,
        words.join(", ")
    ))
}

fn certified(arm: &ArmAnalysis) -> String {
    let knee = &arm.knee.certified;
    let holds = match knee.certified {
        LadderRate::At { rate_rps } => format!("up to {rate_rps} rps"),
        LadderRate::AtLeast { rate_rps } => format!("up to {rate_rps} rps (the highest tested)"),
        LadderRate::Below { .. } | LadderRate::Untested => "at no tested rate".to_owned(),
    };
    let fails = knee
        .fails_from_rps
        .map_or_else(|| "at no tested rate".to_owned(), |rate| format!("from {rate} rps"));
    format!(
        "certified {}: reaches the target {holds}, misses it {fails} (one-sided {} bounds)",
        arm.name,
        percent(Some(knee.confidence))
    )
}

fn latency(arm: &str, cell: &CellAnalysis) -> Option<String> {
    let intervals = &cell.within_run_iid;
    let shown = |value: Option<f64>, interval: &Option<QuantileInterval<f64>>| {
        let interval = match interval.as_ref() {
            Some(QuantileInterval::NotAttainable { min_n, .. }) => {
                format!("(needs {min_n} requests)")
            }
            Some(interval) => interval.ends().map_or_else(String::new, |(low, high)| {
                format!("[{}, {}]", fixed(low, 1), fixed(high, 1))
            }),
            None => String::new(),
        };
        value.map(|value| format!("{} {interval}", fixed(value, 1)))
    };
    Some(format!(
        "TTFT {} at {} rps: p50 {}, p99 {} ms (intervals as if requests were independent)",
        arm,
        cell.rate_rps,
        shown(cell.latency.ttft_p50_ms, &intervals.ttft_p50_ms)?,
        shown(cell.latency.ttft_p99_ms, &intervals.ttft_p99_ms)?
    ))
}

fn dispersion(arm: &str, cell: &CellAnalysis) -> Option<String> {
    let found = cell.dispersion.filter(|found| found.word != DispersionWord::Agrees)?;
    let meaning = match found.word {
        DispersionWord::Overdispersed => "repetitions differ more than their requests explain",
        _ => "repetitions are more alike than independent requests would be",
    };
    Some(format!(
        "{} {arm} at {} rps: phi {} outside [{}, {}]: {meaning}; pooled intervals do not hold",
        found.word.name(),
        cell.rate_rps,
        fixed(found.phi, 2),
        fixed(found.band.0, 2),
        fixed(found.band.1, 2)
    ))
}

/// One line per comparison where a margin is registered.
pub(super) fn equivalences(analysis: &AnalysisFile) -> Vec<String> {
    analysis.comparisons.iter().filter_map(equivalence).collect()
}

fn equivalence(comparison: &Comparison) -> Option<String> {
    let test = comparison.equivalence.as_ref()?;
    let tost = &test.tost;
    let p = |p: Option<f64>| p.map_or("-".to_owned(), |p| fixed(p, 4));
    let needed = match (test.holds(), test.repetitions_needed) {
        (false, Some(n)) => format!("; repetitions needed for 80 %: {n}"),
        _ => String::new(),
    };
    let note = tost.note.as_ref().map_or_else(String::new, |note| format!("; {note}"));
    Some(format!(
        "{} - {} at {} rps within +/-{}: {} (alpha {}, p {} and {}, {} interval {}){needed}{note}",
        comparison.arm,
        comparison.floor,
        comparison.rate_rps,
        tost.margin.delta,
        tost.outcome.name(),
        tost.margin.alpha,
        p(tost.p_lower),
        p(tost.p_upper),
        percent(Some(tost.margin.confidence())),
        ends(&tost.interval, 4)
    ))
}
