//! What a packet costs in the kernel programs, and an event in the agent.

use aya::sys::{Stats, enable_stats};
use serde_json::json;

use super::Args;
use super::floor::Floor;
use super::run::{Observed, observed, packet_cost};
use crate::agent::Agent;
use crate::host::{programs, share};
use crate::load::Plan;
use crate::remote::Load;
use crate::report::Report;

/// An event's size and the rate at which it is sent: the larger, the fewer.
const SIZES: [(usize, u64); 3] = [(200, 20_000), (4_296, 5_000), (16_584, 2_000)];
const KIB: f64 = 1024.0;

fn plan(event_bytes: usize, events_per_second: u64, seconds: u64) -> Plan {
    let connections = 100;
    let events_per_request = (events_per_second / connections).max(1);
    Plan { connections, events_per_second, seconds, event_bytes, events_per_request, churn: false }
}

/// Kernel time for one event: every event is one write and one packet. All time of the packet
/// programs is put down to events, that for acknowledgements and requests, too: an upper bound.
fn per_event(seen: &Observed) -> anyhow::Result<f64> {
    let cost = packet_cost(&seen.programs)?;
    Ok(share(cost.run_time_ns, seen.outcome.events_written))
}

/// Measures all sizes, interleaved, and packets of nobody.
pub(super) fn run(args: &Args, report: &mut Report) -> anyhow::Result<()> {
    // Lives as long as the measurement: the kernel taxes every program on the host meanwhile.
    let _stats = enable_stats(Stats::RunTime)?;
    let mut costs: [Vec<f64>; 3] = Default::default();
    let mut per_run = Vec::new();
    let mut runs = Vec::new();
    let mut cpu = Vec::new();
    let mut other = Vec::new();
    let mut floors = Vec::new();
    let seconds = args.seconds(4, 1);
    for repeat in 1..=args.repeats() {
        eprintln!("kernel cost, {repeat} of {}", args.repeats());
        for ((bytes, rate), costs) in SIZES.into_iter().zip(&mut costs) {
            let seen = observed(&args.agent, &plan(bytes, rate, seconds), |_| Ok(()))?;
            costs.push(per_event(&seen)?);
            if bytes == 200 {
                let cost = packet_cost(&seen.programs)?;
                per_run.push(share(cost.run_time_ns, cost.run_count));
                runs.push(share(cost.run_count, seen.outcome.events_written));
                // Milliseconds for 10,000 events: nanoseconds per event, divided by 100.
                cpu.push(share(seen.agent_cpu_ns, seen.outcome.events_read) / 100.0);
            }
        }
        // Beside the agent's programs, on the same packets.
        let floor = Floor::attach();
        other.push(foreign(args, seconds)?);
        match floor.and_then(|it| it.ns_per_run()) {
            Ok(cost) => floors.push(cost),
            Err(error) => report.notes.push(format!("ns_stats_floor: {error:#}")),
        }
    }
    let slopes = slopes(&costs);
    let [small, middle, large] = costs;
    let net = less_floor(&small, &runs, &floors);
    report.ns_per_matched_packet_net = report.figure("ns_per_matched_packet_net", net);
    let net = less_floor(&other, &vec![1.0; other.len()], &floors);
    report.ns_per_other_packet_net = report.figure("ns_per_other_packet_net", net);
    report.ns_per_matched_packet = report.figure("ns_per_matched_packet", small);
    report.figure("ns_per_packet_4296_bytes", middle);
    report.figure("ns_per_packet_16584_bytes", large);
    report.figure("ns_per_run_acknowledgements_included", per_run);
    report.ns_per_further_kib = report.figure("ns_per_further_kib", slopes);
    report.ns_per_other_packet = report.figure("ns_per_other_packet", other);
    report.ns_stats_floor = report.figure("ns_stats_floor", floors);
    report.agent_cpu_ms_per_10000_events = report.figure("agent_cpu_ms_per_10000_events", cpu);
    report.details["programs"] = loaded(args)?;
    Ok(())
}

/// Each repetition's figure without what the kernel's accounting added to its `runs`; nothing when a floor
/// is missing.
fn less_floor(gross: &[f64], runs: &[f64], floors: &[f64]) -> Vec<f64> {
    if gross.len() != floors.len() {
        return Vec::new();
    }
    gross.iter().zip(runs).zip(floors).map(|((gross, runs), floor)| gross - runs * floor).collect()
}

/// Between the smallest and the largest event of the same repetition.
fn slopes(costs: &[Vec<f64>; 3]) -> Vec<f64> {
    let span: u32 = 16_584 - 200;
    let [small, _, large] = costs;
    small
        .iter()
        .zip(large)
        .map(|(small, large)| (large - small) / (f64::from(span) / KIB))
        .collect()
}

/// Kernel time for a packet of a connection that nobody asked to watch.
fn foreign(args: &Args, seconds: u64) -> anyhow::Result<f64> {
    let mut load = Load::prepare(&plan(200, 20_000, seconds))?;
    // A port that nothing uses: everything on `lo` is somebody else's.
    let agent = Agent::start(&args.agent, &["127.0.0.1:9".parse()?])?;
    let before = packet_sum(&agent)?;
    load.begin()?;
    load.finish()?;
    let after = packet_sum(&agent)?;
    Ok(share(after.0 - before.0, after.1 - before.1))
}

fn packet_sum(agent: &Agent) -> anyhow::Result<(u64, u64)> {
    let all = programs(agent.pid())?;
    let packets = all.iter().filter(|it| it.kind.starts_with("packets"));
    Ok(packets.fold((0, 0), |(time, count), it| (time + it.run_time_ns, count + it.run_count)))
}

fn loaded(args: &Args) -> anyhow::Result<serde_json::Value> {
    let agent = Agent::start(&args.agent, &["127.0.0.1:9".parse()?])?;
    let all = programs(agent.pid())?;
    let one = |it: &crate::host::Program| json!({"kind": it.kind, "verified_instructions": it.verified_instructions});
    Ok(all.iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_taken_off_for_every_run() {
        assert_eq!(less_floor(&[900.0, 800.0], &[1.5, 2.0], &[80.0, 90.0]), [780.0, 620.0]);
        assert!(less_floor(&[900.0, 800.0], &[1.5, 2.0], &[80.0]).is_empty());
    }
}
