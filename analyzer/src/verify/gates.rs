//! Validity of one repetition, by rule.

use std::collections::{BTreeMap, BTreeSet};

use super::code::{Code, Finding};
use crate::analyze::place;
use crate::campaign::{StatisticsKeys, ThresholdKeys};
use crate::evidence::Repetition;
use crate::join::CrossCheck;
use crate::outcome::Class;
use crate::records::{FramingVerdict, RequestRecord, TokensSource};
use crate::rundir::{ReadinessRow, SloFile, TargetKind};

/// What the gates judge a repetition by.
pub struct Context<'a> {
    /// The SLO, for the client lag bound.
    pub slo: &'a SloFile,
    /// Bounds.
    pub thresholds: &'a ThresholdKeys,
    /// Whether chunk counts are accepted.
    pub statistics: &'a StatisticsKeys,
    /// Readiness rows of the whole run.
    pub readiness: &'a [ReadinessRow],
    /// VIP of the arm.
    pub vip: &'a str,
    /// Schedule hash of the floor arm in the same rate and repetition; nothing when it is absent.
    pub floor_schedule: Option<&'a str>,
    /// The campaign lists agents and they were not left out.
    pub agents_expected: bool,
}

/// Every finding of one repetition; it is valid when none discards it.
#[must_use]
pub fn gates(rep: &Repetition, check: &CrossCheck, context: &Context<'_>) -> Vec<Finding> {
    let place = place(&rep.run.arm, Some(rep.run.rate_rps), Some(rep.run.repetition));
    let groups = [
        accounting(rep),
        outcomes(&rep.requests),
        readiness(rep, context),
        client(rep, context),
        gateway(rep, context),
        kernel(check, context),
        workload(rep, context),
    ];
    let found = groups.into_iter().flatten();
    found.map(|(code, detail)| Finding::new(code, place.clone(), detail)).collect()
}

type Found = Vec<(Code, String)>;

fn count(requests: &[RequestRecord], is: impl Fn(&RequestRecord) -> bool) -> usize {
    requests.iter().filter(|row| is(row)).count()
}

fn note(found: &mut Found, code: Code, n: usize, what: &str) {
    if n > 0 {
        found.push((code, format!("{n} {what}")));
    }
}

fn accounting(rep: &Repetition) -> Found {
    let mut found = Found::new();
    let planned: BTreeSet<u64> = rep.schedule.iter().map(|row| row.index).collect();
    let mut seen = BTreeMap::<u64, usize>::new();
    for row in &rep.requests {
        *seen.entry(row.index).or_default() += 1;
    }
    let lost = planned.iter().filter(|index| !seen.contains_key(index)).count();
    let strange = seen.keys().filter(|index| !planned.contains(index)).count();
    let double = seen.values().filter(|n| **n > 1).count();
    let cancelled =
        count(&rep.requests, |row| matches!(row.class, Class::CancelledByTool | Class::Lost));
    note(&mut found, Code::Incomplete, lost, "scheduled requests without a record");
    note(&mut found, Code::Incomplete, cancelled, "requests cancelled by the tool or lost");
    note(&mut found, Code::AccountingBroken, strange, "records outside the schedule");
    note(&mut found, Code::AccountingBroken, double, "requests recorded twice");
    if rep.run.interrupted {
        found.push((Code::Incomplete, "the replay was interrupted".to_owned()));
    }
    found
}

fn outcomes(requests: &[RequestRecord]) -> Found {
    let mut found = Found::new();
    let framing = count(requests, |row| {
        row.class == Class::Framing || row.framing == FramingVerdict::Invalid
    });
    let hung = count(requests, |row| matches!(row.class, Class::TimeoutStalled | Class::Truncated));
    let paired = count(requests, |row| row.class == Class::Ok && row.tpot_ns.is_some());
    note(&mut found, Code::FramingInvalid, framing, "responses");
    note(&mut found, Code::HangOrTruncation, hung, "requests");
    note(&mut found, Code::BackendTimeout, count(requests, backend_timeout), "requests");
    if paired == 0 {
        found.push((Code::ZeroPaired, format!("0 of {} requests", requests.len())));
    }
    found
}

fn backend_timeout(row: &RequestRecord) -> bool {
    let detail = row.detail.to_ascii_lowercase();
    let timeout = detail.contains("timeout") || detail.contains("timed out");
    let names = timeout && (detail.contains("prefill") || detail.contains("processing"));
    row.status == Some(504)
        || (names && matches!(row.class, Class::HttpStatus | Class::InbandError))
}

/// Two consecutive failures of the 1 Hz probe inside the window count as down; one may be chance.
fn readiness(rep: &Repetition, context: &Context<'_>) -> Found {
    let window = rep.run.window_start_ns.get()..=rep.run.window_end_ns.get();
    let mut by_target = BTreeMap::<(TargetKind, &str), Vec<&ReadinessRow>>::new();
    for row in context.readiness.iter().filter(|row| window.contains(&row.at_ns)) {
        by_target.entry((row.kind, &row.target)).or_default().push(row);
    }
    let mut found = Found::new();
    for ((kind, target), rows) in by_target {
        let code = match kind {
            TargetKind::Vip if target == context.vip => Code::VipDown,
            TargetKind::Vip => continue,
            TargetKind::Backend => Code::BackendDown,
        };
        if let Some(pair) = rows.windows(2).find(|pair| !pair[0].ok && !pair[1].ok) {
            let why = pair[1].detail.as_deref().unwrap_or("no answer");
            found.push((code, format!("{target}: {why}")));
        }
    }
    found
}

fn client(rep: &Repetition, context: &Context<'_>) -> Found {
    let mut found = Found::new();
    let bound =
        (context.thresholds.client_lag_p99_ms * 1e6).min(context.slo.ttft_ns as f64 / 100.0);
    match rep.run.lag_p99_ns {
        Some(lag) if lag as f64 <= bound => {}
        Some(lag) => found.push((
            Code::ClientLag,
            format!("p99 lag {:.3} ms, bound {:.3} ms", lag as f64 / 1e6, bound / 1e6),
        )),
        None => found.push((Code::ClientLag, "nothing was dispatched".to_owned())),
    }
    let achieved = rep.run.achieved_rps / rep.run.offered_rps;
    if achieved.is_nan() || achieved < context.thresholds.achieved_share {
        found.push((
            Code::ClientLag,
            format!("achieved {:.2} of {:.2} rps", rep.run.achieved_rps, rep.run.offered_rps),
        ));
    }
    if rep.run.clock_steps > 0 {
        found.push((Code::ClockStep, format!("{} steps", rep.run.clock_steps)));
    }
    if let Some(floor) = context.floor_schedule
        && floor != rep.run.schedule_sha256
    {
        let detail = format!("{} here, {floor} in the floor arm", rep.run.schedule_sha256);
        found.push((Code::ScheduleMismatch, detail));
    }
    found
}

fn gateway(rep: &Repetition, context: &Context<'_>) -> Found {
    match &rep.gateway {
        Some(gateway) if gateway.mismatches.is_empty() => Found::new(),
        Some(gateway) => vec![(Code::ModeMismatch, gateway.mismatches.join("; "))],
        None => vec![(Code::ModeMismatch, format!("no readback of {}", context.vip))],
    }
}

fn kernel(check: &CrossCheck, context: &Context<'_>) -> Found {
    if !context.agents_expected {
        return Found::new();
    }
    let mut found = Found::new();
    if !check.complete {
        let reasons = match check.incomplete_reasons.as_slice() {
            [] => "no agent gave an account".to_owned(),
            reasons => reasons.join(", "),
        };
        found.push((Code::KernelIncomplete, reasons));
    }
    if let Some(first) = check.disagreements.first() {
        let n = check.disagreements.len();
        let detail = format!(
            "{n}; the first is request {}: {} {} by the client, {} by the kernel",
            first.index, first.about, first.client, first.kernel
        );
        found.push((Code::CrosscheckDisagrees, detail));
    }
    note(&mut found, Code::VerdictFlips, check.verdict_flips.len(), "requests");
    if let Some(counted) = check.packets_counted.filter(|n| *n < check.packets_expected) {
        let detail = format!("{counted} counted, {} expected", check.packets_expected);
        found.push((Code::PacketsShort, detail));
    }
    found
}

fn workload(rep: &Repetition, context: &Context<'_>) -> Found {
    let mut found = Found::new();
    let chunks = count(&rep.requests, |row| row.tokens_from == Some(TokensSource::Chunks));
    if !context.statistics.tokens_from_chunks {
        note(&mut found, Code::TokensFromChunks, chunks, "requests");
    }
    let without_tpot = count(&rep.requests, |row| row.tpot_undefined.is_some());
    note(&mut found, Code::SingleTokens, without_tpot, "requests without a TPOT");
    let planned: BTreeMap<u64, (Option<u64>, u64)> =
        rep.schedule.iter().map(|row| (row.index, (row.input_tokens, row.output_tokens))).collect();
    let delivered: Vec<_> = rep.requests.iter().filter(|row| row.class.is_delivered()).collect();
    let pairs = |actual: &dyn Fn(&RequestRecord) -> Option<u64>,
                 wanted: &dyn Fn((Option<u64>, u64)) -> Option<u64>| {
        let pairs = delivered
            .iter()
            .filter_map(|row| Some((actual(row)?, wanted(*planned.get(&row.index)?)?)));
        pairs.fold((0, 0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1))
    };
    let prompt = pairs(&|row| row.prompt_tokens, &|plan| plan.0);
    let output = pairs(&|row| row.completion_tokens, &|plan| Some(plan.1));
    for (what, (actual, wanted)) in [("prompt", prompt), ("output", output)] {
        let departure = actual as f64 / wanted as f64 - 1.0;
        if wanted > 0 && departure.abs() > context.thresholds.workload_share {
            let detail = format!("{what} tokens {:+.1} % off the trace", departure * 100.0);
            found.push((Code::WorkloadMismatch, detail));
        }
    }
    found
}
