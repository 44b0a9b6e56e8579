//! Validity of one repetition, by rule.

use std::collections::{BTreeMap, BTreeSet};

use super::code::{Code, Finding};
use super::copies::place_of;
use super::recount::{pace, recount};
use crate::campaign::{AgentKeys, BackendKeys, StatisticsKeys, ThresholdKeys};
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
    /// Backends of the campaign: each must have been probed.
    pub backends: &'a [BackendKeys],
    /// VIP of the arm.
    pub vip: &'a str,
    /// Schedule hash of the floor arm in the same rate and repetition; nothing when it is absent.
    pub floor_schedule: Option<&'a str>,
    /// Agents of the campaign, each of which owes an account; none when they were left out.
    pub agents: &'a [AgentKeys],
    /// The campaign's seed, from which salts are derived.
    pub seed: u64,
    /// Schedule hash that the manifest registered for this rate and repetition.
    pub registered_schedule: Option<&'a str>,
    /// Another tool measured: what its export cannot hold is asked of the verdict, not of each repetition.
    pub imported: bool,
    /// What this repetition shares with another one.
    pub copy: Option<&'a str>,
}

/// Every finding of one repetition; it is valid when none discards it.
#[must_use]
pub fn gates(rep: &Repetition, check: &CrossCheck, context: &Context<'_>) -> Vec<Finding> {
    let place = place_of(rep);
    let groups = [
        accounting(rep),
        recount(rep, context),
        outcomes(&rep.requests),
        if context.imported { Found::new() } else { readiness(rep, context) },
        client(rep, context),
        if context.imported { Found::new() } else { gateway(rep, context) },
        kernel(rep, check, context),
        workload(rep, context),
        usage(rep),
    ];
    let found = groups.into_iter().flatten();
    found.map(|(code, detail)| Finding::new(code, place.clone(), detail)).collect()
}

pub(super) type Found = Vec<(Code, String)>;

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
    for (file, bytes) in &rep.torn {
        found.push((
            Code::TornRecord,
            format!("{file}: {bytes} bytes of a last line without its end"),
        ));
    }
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
    row.status == Some(504) || row.names_server_timeout
}

/// A window shorter than the probe's period may lie between two probes, so that one this near still tells.
const PROBE_PERIOD_NS: u64 = 1_000_000_000;

/// Two consecutive failures of the 1 Hz probe inside the window count as down; one may be chance. A target
/// without any probe is not known to have been up.
fn readiness(rep: &Repetition, context: &Context<'_>) -> Found {
    let (start, end) = (rep.run.window_start_ns.get(), rep.run.window_end_ns.get());
    let window = start..=end;
    let near = start.saturating_sub(PROBE_PERIOD_NS)..=end.saturating_add(PROBE_PERIOD_NS);
    let mut by_target = BTreeMap::<(TargetKind, &str), Vec<&ReadinessRow>>::new();
    for row in context.readiness.iter().filter(|row| window.contains(&row.at_ns)) {
        by_target.entry((row.kind, &row.target)).or_default().push(row);
    }
    let mut found = Found::new();
    let backends = context.backends.iter().map(|backend| backend.address.as_str());
    for target in std::iter::once(context.vip).chain(backends) {
        let of_target = |row: &&ReadinessRow| row.target == target && near.contains(&row.at_ns);
        if !context.readiness.iter().any(|row| of_target(&row)) {
            found.push((Code::ReadinessUnknown, format!("no probe of {target} in the window")));
        }
    }
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
    let bound = context.thresholds.client_lag_bound_ns(context.slo.ttft_ns);
    let pace = pace(rep);
    match pace.lag_p99_ns {
        Some(lag) if lag as f64 <= bound => {}
        Some(lag) => found.push((
            Code::ClientLag,
            format!("p99 lag {:.3} ms, bound {:.3} ms", lag as f64 / 1e6, bound / 1e6),
        )),
        None => found.push((Code::ClientLag, "nothing was dispatched".to_owned())),
    }
    let achieved = pace.achieved_rps / pace.offered_rps;
    if achieved.is_nan() || achieved < context.thresholds.achieved_share {
        found.push((
            Code::ClientLag,
            format!("achieved {:.2} of {:.2} rps", pace.achieved_rps, pace.offered_rps),
        ));
    }
    if rep.run.clock_steps > 0 {
        found.push((Code::ClockStep, format!("{} steps", rep.run.clock_steps)));
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

fn kernel(rep: &Repetition, check: &CrossCheck, context: &Context<'_>) -> Found {
    if context.agents.is_empty() {
        return Found::new();
    }
    let mut found = Found::new();
    let account = |agent: &&AgentKeys| rep.observed.iter().any(|o| o.account.name == agent.name);
    for agent in context.agents.iter().filter(|agent| !account(agent)) {
        found.push((Code::KernelIncomplete, format!("agent {} gave no account", agent.name)));
    }
    if !check.complete && !rep.observed.is_empty() {
        found.push((Code::KernelIncomplete, check.incomplete_reasons.join(", ")));
    }
    if let Some(first) = check.disagreements.first() {
        let n = check.disagreements.len();
        let detail = format!(
            "{n}; the first is request {}: {} {} by the client, {} by the kernel",
            first.index, first.about, first.client, first.kernel
        );
        found.push((Code::CrosscheckDisagrees, detail));
    }
    if let Some(first) = check.receipts.disagreements.first() {
        let (n, named) = (check.receipts.disagree, first.named);
        let seen: Vec<String> = first.seen.iter().map(ToString::to_string).collect();
        let detail = format!(
            "{n}; the first is request {}: prefill {} and decode {} by the receipt, {} by the kernel",
            first.index,
            named.prefill,
            named.decode,
            seen.join(" and ")
        );
        found.push((Code::ReceiptDisagrees, detail));
    }
    if check.receipts.disaggregated > 0 && check.receipts.absent > 0 {
        let detail = format!("{} requests", check.receipts.absent);
        found.push((Code::ReceiptAbsent, detail));
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
        // A server may claim any number of tokens.
        pairs.fold((0_u128, 0_u128), |sum, (actual, wanted)| {
            (sum.0 + u128::from(actual), sum.1 + u128::from(wanted))
        })
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

/// Usage above this many times `max_tokens` is no count of what was generated.
const MOST_USAGE_OVER_MAX: u64 = 2;

/// Output tokens come from the server's usage, and TPOT with them: fewer than the token events seen, or far more
/// than asked for, would bend TPOT or switch it off.
fn usage(rep: &Repetition) -> Found {
    let asked: BTreeMap<u64, u64> =
        rep.schedule.iter().map(|row| (row.index, row.output_tokens)).collect();
    let said = |row: &RequestRecord| {
        row.completion_tokens.filter(|_| row.tokens_from == Some(TokensSource::Usage))
    };
    let fewer = count(&rep.requests, |row| said(row).is_some_and(|n| n < row.token_events));
    let more = count(&rep.requests, |row| {
        let most = asked.get(&row.index).map(|n| n.saturating_mul(MOST_USAGE_OVER_MAX));
        said(row).zip(most).is_some_and(|(said, most)| said > most)
    });
    let mut found = Found::new();
    note(&mut found, Code::UsageImplausible, fewer, "requests with fewer tokens than token events");
    note(&mut found, Code::UsageImplausible, more, "requests with more than twice max_tokens");
    found
}
