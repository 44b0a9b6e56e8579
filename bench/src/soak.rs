//! Connections come and go for minutes; the agent's memory and maps must not grow with them.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::host::{maps_kib, rss_anon_kib};
use crate::load::Plan;
use crate::remote::Load;

/// Time between two samples.
const SAMPLE: Duration = Duration::from_secs(5);
/// Allocators keep some of what was freed; a leak of a byte for each of 1,000 connections a second
/// shows in minutes, not in one sample.
const SLACK_KIB: u64 = 2_048;
/// Closed connections are remembered for ten seconds; then nothing is left of them.
const FORGET: Duration = Duration::from_secs(15);

/// Options of the soak.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The agent to soak.
    #[arg(long, value_name = "FILE")]
    agent: PathBuf,
    /// How long.
    #[arg(long, default_value = "10")]
    minutes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Duration,
    rss_anon_kib: u64,
    maps_kib: u64,
    in_flight: (u64, u64),
}

fn plan(minutes: u64) -> Plan {
    Plan {
        connections: 100,
        events_per_second: 10_000,
        seconds: minutes * 60,
        event_bytes: 200,
        events_per_request: 20,
        churn: true,
    }
}

/// Samples while connections churn and after they are forgotten; exit code 1 on growth.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = plan(args.minutes);
    let mut load = Load::prepare(&plan)?;
    let agent = Agent::start(&args.agent, &load.ready.endpoints)?;
    let started = Instant::now();
    load.begin()?;
    println!(
        "{:>8} {:>14} {:>10} {:>12} {:>9}",
        "seconds", "RssAnon KiB", "maps KiB", "connections", "requests"
    );
    let mut samples = Vec::new();
    let length = Duration::from_secs(plan.seconds);
    while started.elapsed() + SAMPLE < length {
        // A window in every sample: what it kept must go with it.
        let window = agent.open()?;
        std::thread::sleep(SAMPLE);
        samples.push(sample(&agent, started)?);
        agent.close(&window)?;
        agent.delete(&window)?;
    }
    let outcome = load.finish()?;
    std::thread::sleep(FORGET);
    let last = sample(&agent, started)?;
    let verdict = judge(&samples, last);
    println!("{} connections, {} events", outcome.requests, outcome.events_read);
    println!("{}", verdict.as_deref().unwrap_or("memory and maps are where they were"));
    Ok(if verdict.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn sample(agent: &Agent, started: Instant) -> anyhow::Result<Sample> {
    let sample = Sample {
        at: started.elapsed(),
        rss_anon_kib: rss_anon_kib(agent.pid())?,
        maps_kib: maps_kib(agent.pid())?,
        in_flight: agent.in_flight()?,
    };
    let Sample { at, rss_anon_kib, maps_kib, in_flight } = sample;
    let (connections, requests) = in_flight;
    println!(
        "{:>8.0} {rss_anon_kib:>14} {maps_kib:>10} {connections:>12} {requests:>9}",
        at.as_secs_f64()
    );
    Ok(sample)
}

fn mean(samples: &[Sample]) -> u64 {
    let sum: u64 = samples.iter().map(|it| it.rss_anon_kib).sum();
    sum / u64::try_from(samples.len()).unwrap_or(1).max(1)
}

/// What grew, if anything did. The first quarter is warm-up: tables find their size.
fn judge(samples: &[Sample], last: Sample) -> Option<String> {
    let quarter = samples.len() / 4;
    let (Some(early), Some(late)) =
        (samples.get(quarter..quarter * 2), samples.get(samples.len() - quarter..))
    else {
        return Some("too few samples".to_owned());
    };
    if early.is_empty() {
        return Some("too few samples: soak for a minute at least".to_owned());
    }
    let (early, late) = (mean(early), mean(late));
    let first_maps = samples.first().map_or(0, |it| it.maps_kib);
    let found = [
        (late > early + SLACK_KIB, format!("RssAnon grew from {early} to {late} KiB")),
        (
            last.rss_anon_kib > early + SLACK_KIB,
            format!(
                "RssAnon stayed at {} KiB when all was over; it was {early}",
                last.rss_anon_kib
            ),
        ),
        (
            last.maps_kib > first_maps,
            format!("maps grew from {first_maps} to {} KiB", last.maps_kib),
        ),
        (last.in_flight != (0, 0), format!("{:?} in flight when all was over", last.in_flight)),
    ];
    found.into_iter().find(|(grew, _)| *grew).map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(rss: impl Fn(u64) -> u64) -> Vec<Sample> {
        let sample = |at| Sample {
            at: Duration::from_secs(at),
            rss_anon_kib: rss(at),
            maps_kib: 100,
            in_flight: (5, 5),
        };
        (0..40).map(sample).collect()
    }

    fn end(rss_anon_kib: u64, maps_kib: u64, in_flight: (u64, u64)) -> Sample {
        Sample { at: Duration::from_secs(99), rss_anon_kib, maps_kib, in_flight }
    }

    #[test]
    fn only_growth_fails() {
        let flat = samples(|at| 9_000 + at % 3 * 300);
        assert_eq!(judge(&flat, end(9_000, 100, (0, 0))), None);
        assert!(
            judge(&samples(|at| 9_000 + at * SLACK_KIB / 10), end(9_000, 100, (0, 0))).is_some()
        );
        assert!(judge(&flat, end(13_000, 100, (0, 0))).is_some());
        assert!(judge(&flat, end(9_000, 101, (0, 0))).is_some());
        assert!(judge(&flat, end(9_000, 100, (1, 0))).is_some());
        assert!(judge(&flat[..3], end(9_000, 100, (0, 0))).is_some());
    }
}
