//! What holds for the whole campaign or for none of it: registration, phases, overrides.

use std::collections::BTreeMap;

use super::code::{Code, Effect, Finding};
use super::delivery::KernelState;
use crate::evidence::Evidence;
use crate::records::sha256_hex;
use crate::rundir::{ImportFile, Lack, Override, SloFile};
use crate::slo::{self, SloError};

/// What must hold before any cell is looked at.
pub(super) fn preconditions(evidence: &Evidence, kernel: KernelState) -> Vec<Finding> {
    let mut found = Vec::new();
    let changed = [
        (
            "campaign.toml",
            sha256_hex(evidence.campaign.bytes()),
            &evidence.manifest.campaign_sha256,
        ),
        ("trace.jsonl", evidence.trace_sha256.clone(), &evidence.manifest.trace_sha256),
    ];
    for (file, now, then) in changed.into_iter().filter(|(_, now, then)| now != *then) {
        let detail = format!("{file} hashes to {now}, the manifest says {then}");
        found.push(Finding::new(Code::PreregChanged, "", detail));
    }
    match &evidence.import {
        Some(import) => found.extend(imported(import)),
        None => found.extend(phases(evidence)),
    }
    found.extend(slo(evidence));
    found.extend(other_trace(evidence));
    found.extend(baseline_over_slo(evidence));
    found.extend(overrides(evidence));
    if kernel == KernelState::NotObserved {
        found.push(Finding::new(Code::KernelNotObserved, "", "no agent"));
    }
    found
}

/// The earlier phases, each by its artefact.
fn phases(evidence: &Evidence) -> Vec<Finding> {
    let mut found = Vec::new();
    if evidence.health.as_ref().is_none_or(|health| !health.ok) {
        found.push(Finding::new(Code::MissingPhase, "", "phase 0 (health.json)"));
    }
    for arm in &evidence.campaign.keys().arm {
        if !evidence.probes.contains_key(&arm.name) {
            let detail = format!("phase 2 (probe/{}.json)", arm.name);
            found.push(Finding::new(Code::MissingPhase, arm.name.clone(), detail));
        }
    }
    if evidence.readiness.as_ref().is_none_or(Vec::is_empty) {
        let detail = "readiness during the cells (health.jsonl)";
        found.push(Finding::new(Code::MissingPhase, "", detail));
    }
    found
}

/// What the export lacks. Some of it lacks whatever the file says: it cannot be edited into a proof.
fn imported(import: &ImportFile) -> Vec<Finding> {
    let always = Lack::OF_EVERY_EXPORT.map(|lack| (lack, lack.why().to_owned()));
    let own = import.lacks.iter().map(|entry| (entry.evidence, entry.why.clone()));
    let all: BTreeMap<Lack, String> = always.into_iter().chain(own).collect();
    let finding = |(lack, why): (Lack, String)| {
        let detail = format!("{}: {why}", lack.name());
        let effect = if lack.discards() { Effect::Discard } else { Effect::Footnote };
        Finding { effect, ..Finding::new(Code::EvidenceLacks, "", detail) }
    };
    all.into_iter().map(finding).collect()
}

/// `slo.json` decides what is good, so it is derived again from what it follows from.
fn slo(evidence: &Evidence) -> Option<Finding> {
    if !evidence.slo_recorded {
        return Some(Finding::new(Code::MissingPhase, "", "the SLO (slo.json)"));
    }
    // Before the first repetition the longest answer is unknown, and nothing is claimed.
    let largest = evidence.largest_output()?;
    let (code, detail) = match slo::derive(
        &evidence.campaign,
        largest,
        evidence.baseline.as_deref(),
        evidence.derived.as_ref(),
    ) {
        Ok(derived) if derived.same_bounds(&evidence.slo) => return None,
        Ok(derived) => (
            Code::PreregChanged,
            format!(
                "slo.json says {}; campaign and baseline give {}",
                bounds(&evidence.slo),
                bounds(&derived)
            ),
        ),
        Err(SloError::NoBaseline) => {
            (Code::MissingPhase, "the baseline of the SLO (baseline/requests.jsonl)".to_owned())
        }
        Err(error @ SloError::Origin(_)) => (Code::SloWithoutOrigin, error.to_string()),
        Err(error) => (Code::PreregChanged, format!("slo.json has no basis: {error}")),
    };
    Some(Finding::new(code, "", detail))
}

/// A baseline of other prompts is not one of what is scored.
fn other_trace(evidence: &Evidence) -> Option<Finding> {
    let measured = &evidence.derived.as_ref()?.slo.origin.trace_sha256;
    let scored = &evidence.manifest.trace_sha256;
    let detail = format!("the SLO was derived on trace {measured}, the run replays {scored}");
    (measured != scored).then(|| Finding::new(Code::SloWithoutOrigin, "", detail))
}

/// What misses with nothing else in the system cannot be mended by routing.
fn baseline_over_slo(evidence: &Evidence) -> Option<Finding> {
    let share = slo::unloaded_misses(&evidence.slo, evidence.baseline.as_deref()?)?;
    let target = evidence.campaign.keys().slo.target;
    let detail = format!(
        "{:.1} % of the unloaded requests miss the SLO; the target allows {:.1} %",
        share * 100.0,
        (1.0 - target) * 100.0
    );
    let effect = if share > 1.0 - target { Effect::Footnote } else { Effect::Info };
    (share > 0.0).then(|| Finding { effect, ..Finding::new(Code::BaselineOverSlo, "", detail) })
}

fn bounds(slo: &SloFile) -> String {
    format!("TTFT {} ns, TPOT {} ns, deadline {} ns", slo.ttft_ns, slo.tpot_ns, slo.deadline_ns)
}

/// What the command line asked for otherwise than the campaign. A reduced number of repetitions is made up for
/// by continuing; a short probe is not repeated, and stays a footnote.
fn overrides(evidence: &Evidence) -> Vec<Finding> {
    let keys = evidence.campaign.keys();
    let mut found = Vec::new();
    if evidence.manifest.without_agent && !keys.agent.is_empty() {
        let detail = format!("--without-agent; the campaign lists {} agents", keys.agent.len());
        found.push(Finding::new(Code::Override, "", detail));
    }
    let registered = keys.load.repetitions as usize;
    let cells = keys.arm.iter().flat_map(|arm| {
        evidence.campaign.rates().into_iter().map(|rate| evidence.cell(&arm.name, rate).count())
    });
    let whole = cells.min().is_some_and(|least| least >= registered);
    for setting in &evidence.manifest.overrides {
        if let Override::Repetitions { asked, registered } = setting {
            let effect = if whole { Effect::Info } else { Effect::AddReplicates };
            let detail = format!("{asked} repetitions, the campaign says {registered}");
            found.push(Finding { effect, ..Finding::new(Code::ReducedRun, "", detail) });
        }
    }
    for probe in evidence.probes.values().filter(|probe| probe.seconds < keys.probe.seconds) {
        let detail =
            format!("a probe of {} s, the campaign says {} s", probe.seconds, keys.probe.seconds);
        let finding = Finding::new(Code::ReducedRun, probe.arm.clone(), detail);
        found.push(Finding { effect: Effect::Footnote, ..finding });
    }
    found
}
