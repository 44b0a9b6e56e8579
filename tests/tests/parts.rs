//! A slow client moves the client part of TTFT, a slow gateway the gateway part, and nothing else.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use e2e::agent::{Agent, Watch};
use e2e::cross_check::cross_check;
use e2e::fleet::Fleet;
use e2e::replay::Replay;
use e2e::require_kernel;
use e2e::trace::Trace;

const FLEET: &str = "
[engine]
prefill_tokens_per_s = 100000
[[backend]]
name = 'b0'
[[gateway]]
name = 'plain'
policy = { algorithm = 'round_robin' }
[[gateway]]
name = 'holds'
fault = 'hold_chunks_ms=50'
policy = { algorithm = 'round_robin' }
";
/// Medians of 30 requests on a busy host; a tenth of the larger delay.
const TOLERANCE_US: f64 = 5_000.0;

/// Medians of the client, gateway and backend part, in microseconds.
type Parts = [f64; 3];

#[test]
fn each_delay_moves_its_own_part_by_its_size() -> anyhow::Result<()> {
    require_kernel!();
    let fleet = Fleet::start(FLEET)?;
    let watch = Watch {
        interfaces: vec!["lo"],
        api: "127.0.0.1:0",
        vips: vec![fleet.vip("plain")?, fleet.vip("holds")?],
        backends: vec![fleet.backend("b0")?],
    };
    let agent = Agent::start(&watch)?;
    let control = parts(&fleet, &agent, "plain", &[])?;
    let slow_client = parts(&fleet, &agent, "plain", &["--slow-client-ms", "20"])?;
    let slow_gateway = parts(&fleet, &agent, "holds", &[])?;
    eprintln!(
        "us: control {control:?}, slow client {slow_client:?}, slow gateway {slow_gateway:?}"
    );
    assert_moved("slow client", control, slow_client, [20_000.0, 0.0, 0.0]);
    assert_moved("slow gateway", control, slow_gateway, [0.0, 50_000.0, 0.0]);
    Ok(())
}

fn parts(fleet: &Fleet, agent: &Agent, gateway: &str, more: &[&str]) -> anyhow::Result<Parts> {
    let trace = Trace { rows: 30, groups: 3, blocks: 2, output_tokens: 4 }.text();
    let more = [&["--model", "sim-model"], more].concat();
    let replay = Replay { to: fleet.vip(gateway)?, trace: &trace, rate: 20.0, more: &more };
    let folder = tempfile::tempdir()?;
    let (requests, window) = agent.api().window(gateway, || replay.run(folder.path()))?;
    window.ensure_complete()?;
    let split = cross_check(&requests, &[&window])?.split;
    assert_eq!((split.client.n, split.gateway.n), (30, 30));
    Ok([split.client, split.gateway, split.backend].map(|part| part.p50_us.unwrap()))
}

fn assert_moved(what: &str, control: Parts, moved: Parts, by: Parts) {
    for ((part, delay), name) in control
        .iter()
        .zip(moved)
        .zip(by)
        .map(|((a, b), by)| (b - a, by))
        .zip(["client", "gateway", "backend"])
    {
        assert!(
            (part - delay).abs() <= TOLERANCE_US,
            "{what}: the {name} part moved by {part} us, not {delay}"
        );
    }
}
