//! Nothing may be lost: not at the fleet's rate, not while the agent stands still, not in a flood.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde::Serialize;

use super::Args;
use super::run::{Observed, observed};
use crate::load::Plan;
use crate::report::Report;

/// How long the agent is stopped.
const STOPPED: Duration = Duration::from_millis(250);

/// What was offered and what was seen.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Completeness {
    name: &'static str,
    connections: u64,
    events_per_second: u64,
    /// Of the whole run, the schedule's end included.
    achieved_events_per_second: f64,
    seconds: u64,
    requests: u64,
    observations: u64,
    pub(crate) events_offered: u64,
    events_observed: u64,
    pub(crate) events_lost: u64,
    records_lost: u64,
    packets_unparsed: u64,
    gaps: u64,
    complete: bool,
    reasons: Vec<String>,
    /// Everything equals the client's own count, and the window is complete.
    pub(crate) passed: bool,
}

impl Completeness {
    fn new(name: &'static str, plan: &Plan, seen: &Observed) -> Self {
        let Observed { outcome, closing, rows, .. } = seen;
        let counters = &closing.counters;
        let equal = rows.distinct == outcome.requests
            && closing.observations == outcome.requests
            && rows.events == outcome.events_read
            && rows.tokens == outcome.events_read
            && rows.bytes == outcome.bytes_read
            && outcome.events_read == outcome.events_written;
        let reconciled = [&counters.segments, &counters.sockets]
            .iter()
            .all(|class| class.failed == 0 && class.attempted == class.consumed);
        Self {
            name,
            connections: plan.connections,
            events_per_second: plan.events_per_second,
            achieved_events_per_second: crate::host::share(
                outcome.events_read * 1_000_000,
                outcome.elapsed_ns / 1_000,
            ),
            seconds: plan.seconds,
            requests: outcome.requests,
            observations: closing.observations,
            events_offered: outcome.events_written,
            events_observed: rows.events,
            events_lost: outcome.events_written.saturating_sub(rows.events),
            records_lost: counters.segments.failed + counters.sockets.failed,
            packets_unparsed: counters.unparsed_packets,
            gaps: counters.gaps,
            complete: closing.complete,
            reasons: closing.reasons.clone(),
            passed: equal && reconciled && closing.complete && rows.faulty == 0,
        }
    }

    pub(crate) fn print(&self) {
        let verdict = if self.passed { "ok" } else { "INCOMPLETE" };
        println!(
            "{:<8} {verdict}: {} of {} requests, {} of {} events ({:.0}/s), {} lost, {} unparsed, reasons {:?}",
            self.name,
            self.observations,
            self.requests,
            self.events_observed,
            self.events_offered,
            self.achieved_events_per_second,
            self.events_lost,
            self.packets_unparsed,
            self.reasons,
        );
    }
}

fn plan(events_per_second: u64, seconds: u64) -> Plan {
    Plan {
        connections: 200,
        events_per_second,
        seconds,
        event_bytes: 200,
        // A request takes a second of the schedule.
        events_per_request: events_per_second / 200,
        churn: false,
    }
}

/// Runs all three parts.
pub(super) fn run(args: &Args, report: &mut Report) -> anyhow::Result<()> {
    let parts = [
        ("steady", plan(20_000, args.seconds(60, 5)), false),
        ("stopped", plan(20_000, args.seconds(10, 4)), true),
        ("flood", plan(100_000, args.seconds(10, 3)), false),
    ];
    for (name, plan, stop) in parts {
        eprintln!(
            "completeness, {name}: {} events/s for {} s",
            plan.events_per_second, plan.seconds
        );
        let middle = Duration::from_secs(plan.seconds) / 2;
        let seen = observed(&args.agent, &plan, |agent| {
            if stop {
                std::thread::sleep(middle);
                agent.remote.signal(Signal::SIGSTOP)?;
                std::thread::sleep(STOPPED);
                agent.remote.signal(Signal::SIGCONT)?;
            }
            Ok(())
        })?;
        let part = Completeness::new(name, &plan, &seen);
        report.events_offered += part.events_offered;
        report.events_lost += part.events_lost;
        report.completeness.push(part);
    }
    Ok(())
}
