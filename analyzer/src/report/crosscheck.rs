//! Client against kernel, as printed.

use std::fmt::Write as _;

use super::figures::{micros, percent};
use super::table;
use crate::analyze::AnalysisFile;
use crate::join::{CrossCheck, Distribution};
use crate::verify::{KernelState, VerdictFile};

pub(super) fn lines(analysis: &AnalysisFile, verdict: &VerdictFile) -> String {
    if verdict.kernel == KernelState::NotObserved {
        return String::new();
    }
    let mut text = String::new();
    let mut differences = table(&["client - kernel, us", "n", "min", "p50", "p90", "p99", "max"]);
    for arm in &analysis.arms {
        let check = &arm.crosscheck;
        let rows = [
            ("TTFT", &check.ttft_difference),
            ("TPOT", &check.tpot_difference),
            ("TTFT client part", &check.split.client),
            ("TTFT gateway part", &check.split.gateway),
            ("TTFT backend part", &check.split.backend),
        ];
        for (what, distribution) in rows {
            differences.add_row(row(&format!("{} {what}", arm.name), distribution));
        }
    }
    let _ = writeln!(
        text,
        "{differences}\nTTFT, TPOT: the client's figure less the kernel's at the gateway; the parts add up to the \
         client's TTFT, each as the kernel saw it"
    );
    for arm in &analysis.arms {
        let _ = writeln!(text, "{}", observed(&arm.name, &arm.crosscheck));
        let _ = writeln!(text, "{}", shares(&arm.name, &arm.crosscheck));
    }
    text
}

fn row(label: &str, d: &Distribution) -> Vec<String> {
    let figures = [d.min_us, d.p50_us, d.p90_us, d.p99_us, d.max_us].map(micros);
    [label.to_owned(), d.n.to_string()].into_iter().chain(figures).collect()
}

fn observed(arm: &str, check: &CrossCheck) -> String {
    let counted = check.packets_counted.map_or("-".to_owned(), |n| n.to_string());
    let lost = match check.incomplete_reasons.as_slice() {
        [] => "nothing lost".to_owned(),
        reasons => format!("incomplete ({})", reasons.join(", ")),
    };
    format!(
        "kernel, {arm}: of {} completed requests {} on the client leg, {} on a backend leg; {lost}\n  \
         packets {counted} counted >= {} expected; p99 |client - kernel TTFT| {} us; verdict flips {}; \
         disagreements {}; coalesced reads {}",
        check.completed,
        check.on_client_leg,
        check.on_backend_leg,
        check.packets_expected,
        micros(check.ttft_magnitude_p99_us),
        check.verdict_flips.len(),
        check.disagreements.len(),
        percent(check.coalesced_share)
    )
}

fn shares(arm: &str, check: &CrossCheck) -> String {
    let total: u64 = check.backend_requests.values().sum();
    let each: Vec<String> = check
        .backend_requests
        .iter()
        .map(|(backend, n)| format!("{backend} {}", percent(Some(*n as f64 / total.max(1) as f64))))
        .collect();
    format!("requests per backend as the kernel saw them, {arm}: {}", each.join(", "))
}
