//! The terminal summary: a table a person can read, from the same figures as the JSON files.

mod crosscheck;
mod detail;
mod figures;
mod verdict;

use std::fmt::Write as _;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use crate::analyze::{AnalysisFile, CellAnalysis, KneeOutcome, Outcome};
use crate::rundir::SloOrigin;
use crate::verify::VerdictFile;
use figures::{ends, fixed, percent};

/// What the columns of the ladder mean.
const LEGEND: &str = "valid: valid of recorded repetitions; good: requests within the SLO / attempted; CV: spread of \
                      good over repetitions;\ngoodput/acc: good requests per second and accelerator; hits: prompt \
                      tokens from a prefix cache; p50, p99: TTFT";

/// The whole summary, ending with the verdict.
#[must_use]
pub fn summary(analysis: &AnalysisFile, verdict: &VerdictFile) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}: {}\n{}", analysis.campaign, verdict.verdict.name(), slo(analysis));
    let _ = writeln!(text, "{}\n{LEGEND}", ladder(analysis));
    let lines = [
        knees(analysis),
        detail::knees(analysis),
        comparisons(analysis),
        detail::equivalences(analysis),
    ];
    for line in lines.concat() {
        let _ = writeln!(text, "{line}");
    }
    text.push_str(&crosscheck::lines(analysis, verdict));
    text.push_str(&verdict::lines(verdict));
    text
}

pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn slo(analysis: &AnalysisFile) -> String {
    let slo = &analysis.slo;
    let origin = match &slo.origin {
        SloOrigin::Fixed { origin } => origin.clone(),
        SloOrigin::MultipleOfBaseline {
            arm,
            requests,
            ttft_multiple,
            tpot_multiple,
            unloaded_share_over_slo,
            ..
        } => format!(
            "{ttft_multiple} x and {tpot_multiple} x the median of {requests} unloaded requests through {arm}, {} of which exceed the TTFT SLO",
            percent(Some(*unloaded_share_over_slo))
        ),
    };
    format!(
        "SLO: TTFT <= {} ms, TPOT <= {} ms; target {} good ({origin})",
        fixed(slo.ttft_ns as f64 / 1e6, 1),
        fixed(slo.tpot_ns as f64 / 1e6, 3),
        percent(Some(analysis.target))
    )
}

fn ladder(analysis: &AnalysisFile) -> Table {
    let interval = format!("{:.0} % CI (t)", analysis.confidence * 100.0);
    let mut table = table(&[
        "arm",
        "rate rps",
        "valid",
        "good",
        &interval,
        "CV",
        "goodput/acc",
        "hits",
        "p50 ms",
        "p99 ms",
    ]);
    for arm in &analysis.arms {
        for cell in &arm.cells {
            table.add_row(row(&arm.name, cell));
        }
    }
    table
}

fn row(arm: &str, cell: &CellAnalysis) -> Vec<String> {
    let number = |value: Option<f64>, digits| value.map_or("-".to_owned(), |v| fixed(v, digits));
    vec![
        arm.to_owned(),
        cell.rate_rps.to_string(),
        format!("{}/{}", cell.valid, cell.repetitions.len()),
        number(cell.good_fraction, 4),
        ends(&cell.interval_t, 4),
        percent(cell.cv.value()),
        number(cell.goodput_per_accelerator, 2),
        percent(cell.prefix_hit_share),
        number(cell.latency.ttft_p50_ms, 1),
        number(cell.latency.ttft_p99_ms, 1),
    ]
}

fn knees(analysis: &AnalysisFile) -> Vec<String> {
    let line = |arm: &crate::analyze::ArmAnalysis| {
        let (outcome, mark) = match arm.knee.tested {
            KneeOutcome::NoCandidate => {
                (arm.knee.provisional, " (provisional: too few repetitions)")
            }
            tested => (tested, ""),
        };
        let words = match outcome {
            KneeOutcome::Bracketed { rung } => format!(
                "{} rps, goodput@SLO {} rps per accelerator, good-fraction {}",
                rung.rate_rps,
                fixed(rung.goodput_per_accelerator, 2),
                fixed(rung.good_fraction, 4)
            ),
            KneeOutcome::AtLeast { rung } => format!(
                ">= {} rps (the highest tested), goodput@SLO >= {} rps per accelerator",
                rung.rate_rps,
                fixed(rung.goodput_per_accelerator, 2)
            ),
            KneeOutcome::Below { rate_rps } => format!("< {rate_rps} rps (the lowest tested)"),
            KneeOutcome::NoCandidate => "none: no valid repetition".to_owned(),
        };
        format!("knee {}: {words}{mark}", arm.name)
    };
    analysis.arms.iter().map(line).collect()
}

fn permutation(comparison: &crate::analyze::Comparison) -> String {
    let comparable = comparison.outcome != Outcome::NotComparable;
    comparison.permutation.filter(|_| comparable).map_or_else(String::new, |exact| {
        let (p, holm) = (fixed(exact.p, 4), fixed(exact.holm_p, 4));
        format!(" (permutation p {p}, {holm} over all comparisons)")
    })
}

fn comparisons(analysis: &AnalysisFile) -> Vec<String> {
    let line = |comparison: &crate::analyze::Comparison| {
        let difference = comparison.difference.as_ref();
        let estimate = difference.map_or("-".to_owned(), |d| format!("{:+.4}", d.estimate));
        let pooled = comparison.read_from == "pooled";
        let interval = match (pooled, difference) {
            (true, _) => format!("{} pooled", ends(&comparison.pooled_interval, 4)),
            (false, Some(difference)) => ends(&difference.interval, 4),
            (false, None) => "-".to_owned(),
        };
        let word = match comparison.outcome {
            Outcome::Win => "above 0",
            Outcome::Loss => "below 0",
            Outcome::Inconclusive => "inconclusive",
            Outcome::NotComparable => "not comparable yet",
        };
        format!(
            "{} - {} at {} rps: {estimate} {interval}: {word}{}",
            comparison.arm,
            comparison.floor,
            comparison.rate_rps,
            permutation(comparison)
        )
    };
    analysis.comparisons.iter().map(line).collect()
}

#[cfg(test)]
mod tests;
