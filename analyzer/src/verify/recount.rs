//! `run.json` against the records it sums up: nothing in it is believed that can be counted again.

use super::code::Code;
use super::gates::{Context, Found};
use crate::evidence::Repetition;
use crate::prompt::Salt;
use crate::records::{Pace, PaceFigures, RequestRecord, schedule_sha256};
use crate::schedule::length_ns;

/// Rates are sums and quotients of the same numbers: only the reading of decimals may differ.
const RATE_TOLERANCE: f64 = 1e-9;

/// Dispatch figures of the records, over the schedule's length at the cell's rate.
pub(crate) fn pace(rep: &Repetition) -> PaceFigures {
    let mut pace = Pace::default();
    rep.requests.iter().for_each(|row| pace.add(row.planned_ns, row.dispatched_ns));
    pace.figures(rep.schedule.len(), wall_ns(rep))
}

/// Length of the schedule, ns: requests / rate. 0 for a schedule that no replay can have.
pub(crate) fn wall_ns(rep: &Repetition) -> u64 {
    length_ns(rep.schedule.len(), rep.place.rate_rps).unwrap_or(0)
}

/// From the start of the window to the end of its last request, ns.
pub(crate) fn wall_incl_drain_ns(rep: &Repetition) -> u64 {
    let end = rep.requests.iter().map(|row| row.end_ns.get()).max().unwrap_or(0);
    end.saturating_sub(rep.run.window_start_ns.get())
}

/// Everything that `run.json` and the directory say otherwise than the records do.
pub(super) fn recount(rep: &Repetition, context: &Context<'_>) -> Found {
    let mut found = Found::new();
    let mut said = identity(rep, context);
    said.extend(figures(rep));
    said.extend(rows(rep, context.imported));
    if !said.is_empty() {
        found.push((Code::RecordsDisagree, said.join("; ")));
    }
    if let Some(other) = context.copy {
        found.push((Code::RecordsDisagree, other.to_owned()));
    }
    found.extend(schedule(rep, context).map(|detail| (Code::ScheduleMismatch, detail)));
    found
}

/// The directory names the cell, and the seed gives each repetition its own salt.
fn identity(rep: &Repetition, context: &Context<'_>) -> Vec<String> {
    let (place, run) = (&rep.place, &rep.run);
    let mut said = Vec::new();
    if run.arm != place.arm {
        said.push(format!("run.json is of arm {}", run.arm));
    }
    if run.rate_rps.total_cmp(&place.rate_rps).is_ne() {
        said.push(format!("run.json is of {} rps", run.rate_rps));
    }
    if run.repetition != place.repetition {
        said.push(format!("run.json is of repetition {}", run.repetition));
    }
    if context.imported {
        return said;
    }
    let salt = Salt::derive(context.seed, &place.arm, place.rate_rps, place.repetition).as_text();
    if run.salt.as_deref() != Some(salt.as_str()) {
        let found = run.salt.as_deref().unwrap_or("none");
        said.push(format!("salt {found}, the campaign's seed gives {salt}"));
    }
    said
}

fn figures(rep: &Repetition) -> Vec<String> {
    let (run, pace) = (&rep.run, pace(rep));
    let end = rep.requests.iter().map(|row| row.end_ns).max().unwrap_or(run.window_start_ns);
    let whole = [
        ("attempted", run.attempted, rep.schedule.len() as u64),
        ("dispatched", run.dispatched, pace.dispatched),
        ("schedule_length_ns", run.schedule_length_ns, wall_ns(rep)),
        ("window_end_ns", run.window_end_ns.get(), end.get()),
    ];
    let lags = [
        ("lag_p50_ns", run.lag_p50_ns, pace.lag_p50_ns),
        ("lag_p99_ns", run.lag_p99_ns, pace.lag_p99_ns),
        ("lag_max_ns", run.lag_max_ns, pace.lag_max_ns),
    ];
    let rates = [
        ("offered_rps", run.offered_rps, pace.offered_rps),
        ("achieved_rps", run.achieved_rps, pace.achieved_rps),
    ];
    let say = |key: &str, said: String, counted: String| {
        format!("{key} is {said} in run.json and {counted} by the records")
    };
    let lag = |lag: Option<i64>| lag.map_or("null".to_owned(), |lag| lag.to_string());
    let whole = whole.into_iter().filter(|(_, a, b)| a != b);
    let lags = lags.into_iter().filter(|(_, a, b)| a != b);
    let rates = rates.into_iter().filter(|(_, a, b)| !close(*a, *b));
    whole
        .map(|(key, a, b)| say(key, a.to_string(), b.to_string()))
        .chain(lags.map(|(key, a, b)| say(key, lag(a), lag(b))))
        .chain(rates.map(|(key, a, b)| say(key, a.to_string(), b.to_string())))
        .collect()
}

fn close(said: f64, counted: f64) -> bool {
    (said - counted).abs() <= RATE_TOLERANCE * counted.abs()
}

/// The records against the schedule and against themselves; the first contradiction is named.
fn rows(rep: &Repetition, imported: bool) -> Option<String> {
    let planned: std::collections::BTreeMap<u64, _> =
        rep.schedule.iter().map(|row| (row.index, row)).collect();
    let contradiction = |row: &RequestRecord| {
        let plan = planned.get(&row.index);
        let at = |offset: u64| rep.run.window_start_ns.get().saturating_add(offset);
        if plan.is_some_and(|plan| plan.trace_id != Some(row.trace_id)) {
            return Some("trace_id is not the schedule's");
        }
        if plan.is_some_and(|plan| at(plan.planned_offset_ns) != row.planned_ns.get()) {
            return Some("planned_ns is not the start of the window + planned_offset_ns");
        }
        if imported { row.contradiction_in_import() } else { row.contradiction() }
    };
    let bad: Vec<(u64, &str)> =
        rep.requests.iter().filter_map(|row| Some((row.index, contradiction(row)?))).collect();
    let (index, what) = bad.first()?;
    Some(format!(
        "{} records contradict themselves, the first is request {index}: {what}",
        bad.len()
    ))
}

/// The schedule as it lies there against what `run.json`, the manifest and the floor arm say of it.
fn schedule(rep: &Repetition, context: &Context<'_>) -> Option<String> {
    let hash = match schedule_sha256(rep.schedule.iter().cloned()) {
        Ok(hash) => hash,
        Err(error) => return Some(error.to_string()),
    };
    let said = [
        (Some(rep.run.schedule_sha256.as_str()), "run.json says"),
        (context.registered_schedule, "the manifest registered"),
    ];
    let differs: Vec<String> = said
        .into_iter()
        .filter(|(other, _)| *other != Some(hash.as_str()))
        .map(|(other, who)| format!("{who} {}", other.unwrap_or("none")))
        .collect();
    if differs.is_empty() {
        // Equal to the manifest's, so equal to the floor's unless that one differs.
        return context
            .floor_schedule
            .filter(|floor| *floor != hash)
            .map(|floor| format!("{hash} here, {floor} in the floor arm"));
    }
    Some(format!("schedule.jsonl hashes to {hash}, {}", differs.join(", ")))
}
