//! Memory of the agent while 10,000 connections stream.

use std::time::{Duration, Instant};

use super::Args;
use crate::agent::Agent;
use crate::host::{rss_anon_kib, share};
use crate::load::Plan;
use crate::remote::Load;
use crate::report::Report;

const CONNECTIONS: u64 = 10_000;
/// Generators that share them: one would need more open files than many hosts allow.
const GENERATORS: u64 = 2;
/// Setting up all connections takes a few seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes the largest value while all requests are in flight.
pub(super) fn run(args: &Args, report: &mut Report) -> anyhow::Result<()> {
    eprintln!("memory: {CONNECTIONS} connections");
    let plan = Plan {
        connections: CONNECTIONS / GENERATORS,
        events_per_second: CONNECTIONS / GENERATORS,
        seconds: args.seconds(10, 5),
        event_bytes: 200,
        events_per_request: args.seconds(10, 5),
        churn: false,
    };
    let mut loads =
        (0..GENERATORS).map(|_| Load::prepare(&plan)).collect::<anyhow::Result<Vec<_>>>()?;
    let endpoints: Vec<_> =
        loads.iter().flat_map(|load| load.ready.endpoints.iter().copied()).collect();
    let agent = Agent::start(&args.agent, &endpoints)?;
    let at_start = rss_anon_kib(agent.pid())?;
    loads.iter_mut().try_for_each(Load::begin)?;
    let started = Instant::now();
    let (mut most, mut largest) = ((0, 0), 0);
    while started.elapsed() < PATIENCE {
        let (connections, requests) = agent.in_flight()?;
        if (most.0 == CONNECTIONS || most.1 == CONNECTIONS) && requests < CONNECTIONS / 2 {
            break;
        }
        most = (connections.max(most.0), requests.max(most.1));
        largest = largest.max(rss_anon_kib(agent.pid())?);
        std::thread::sleep(Duration::from_millis(100));
    }
    for load in loads {
        load.finish()?;
    }
    report.details["memory"] = serde_json::json!({
        "rss_anon_kib_at_start": at_start,
        "rss_anon_kib_largest": largest,
        "connections_in_flight_most": most.0,
        "requests_in_flight_most": most.1,
    });
    if most.0 == CONNECTIONS {
        report.rss_anon_mib_at_10k_connections =
            report.figure("rss_anon_mib_at_10k_connections", vec![share(largest, 1024)]);
    } else {
        report
            .notes
            .push(format!("memory: the agent counted {most:?} in flight, not {CONNECTIONS}"));
    }
    Ok(())
}
