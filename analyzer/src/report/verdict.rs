//! The verdict and its reasons, as printed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::figures::ends;
use crate::verify::{Code, Effect, Finding, Proof, VerdictFile};

/// Findings of one code that are printed before the rest is only counted.
const SHOWN: usize = 3;

pub(super) fn lines(verdict: &VerdictFile) -> String {
    let mut text = String::new();
    for proof in verdict.decision.iter().filter(|proof| proof.proof != Proof::NotAsked) {
        let known = |n: Option<f64>| n.map_or("absent".to_owned(), |n| n.to_string());
        let repeated = known(proof.repeated_prefix_requests.map(|n| n as f64));
        let _ = writeln!(
            text,
            "decision proof, {}: {}; hits {} of {repeated} repeated prefixes, misses {} of {}",
            proof.arm,
            word(proof.proof),
            known(proof.hits),
            known(proof.misses),
            proof.requests
        );
    }
    for win in &verdict.wins {
        let _ = writeln!(
            text,
            "win: {} over {} at {} rps: {:+.4} {}",
            win.arm,
            win.floor,
            win.rate_rps,
            win.difference,
            ends(&win.interval, 4)
        );
    }
    if verdict.wins.is_empty() {
        let _ = writeln!(text, "win: none claimed");
    }
    for claim in &verdict.equivalences {
        let _ = writeln!(
            text,
            "equivalent: {} and {} at {} rps within +/-{}: {:+.4} {}",
            claim.arm,
            claim.floor,
            claim.rate_rps,
            claim.delta,
            claim.difference,
            ends(&claim.interval, 4)
        );
    }
    text.push_str(&reasons(&verdict.findings));
    if let Some(add) = &verdict.add_replicates {
        let _ = writeln!(
            text,
            "add replicates: {} more, so that every arm and rate has {}: {} requests, {:.1} minutes of load:\n  {}",
            add.to_add, add.repetitions, add.requests, add.minutes, add.command
        );
    }
    if let Some(imported) = &verdict.imported {
        let lacks = imported.lacks.iter().filter_map(|it| it.split(':').next());
        let _ = writeln!(
            text,
            "imported from {}: {} on the evidence that is there; a publication lacks {}",
            imported.tool,
            imported.on_what_is_there.name(),
            lacks.collect::<Vec<_>>().join(", ")
        );
    }
    let _ = writeln!(
        text,
        "verdict: {} (calibration: {}, kernel: {})",
        verdict.verdict.name(),
        verdict.calibration,
        verdict.kernel.words()
    );
    text
}

fn word(proof: Proof) -> &'static str {
    match proof {
        Proof::Holds => "holds",
        Proof::Failed => "FAILED",
        Proof::Unknown => "UNKNOWN",
        Proof::NotAsked => "not asked",
    }
}

fn reasons(findings: &[Finding]) -> String {
    let mut by_code = BTreeMap::<(std::cmp::Reverse<Effect>, Code), Vec<&Finding>>::new();
    for finding in findings {
        by_code.entry((std::cmp::Reverse(finding.effect), finding.code)).or_default().push(finding);
    }
    let mut text = String::new();
    for ((effect, code), found) in by_code {
        let _ = writeln!(text, "{} ({}): {}", code.name(), effect.0.name(), code.text());
        for finding in found.iter().take(SHOWN) {
            let place = if finding.place.is_empty() { "campaign" } else { &finding.place };
            let _ = writeln!(text, "  {place}: {}", finding.detail);
        }
        if found.len() > SHOWN {
            let _ = writeln!(text, "  and {} more in verdict.json", found.len() - SHOWN);
        }
        if effect.0 != Effect::Info {
            let _ = writeln!(text, "  mend: {}", code.remedy());
        }
    }
    text
}
