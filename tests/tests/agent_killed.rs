//! SIGKILL of the agent leaves no program attached, and the replay goes on undisturbed.

use std::path::Path;
use std::time::{Duration, Instant};

use e2e::agent::{Agent, Watch};
use e2e::fleet::Fleet;
use e2e::jsonl;
use e2e::kernel::{programs_held_by, programs_on};
use e2e::replay::Replay;
use e2e::require_kernel;
use e2e::trace::Trace;
use nix::sys::signal::Signal;

const FLEET: &str = "
[engine]
prefill_tokens_per_s = 100000
[[backend]]
name = 'b0'
";
const ROWS: usize = 60;

#[test]
fn a_killed_agent_leaves_nothing_attached() -> anyhow::Result<()> {
    require_kernel!();
    let fleet = Fleet::start(FLEET)?;
    let address = fleet.backend("b0")?;
    let watch =
        Watch { interfaces: vec!["lo"], api: "127.0.0.1:0", vips: vec![], backends: vec![address] };
    let agent = Agent::start(&watch)?;
    let held = programs_held_by(agent.process().pid())?;
    assert!(!held.is_empty() && held.is_subset(&programs_on("lo")?), "{held:?} are not on lo");

    let trace = Trace { rows: ROWS, groups: 2, blocks: 1, output_tokens: 4 }.text();
    let replay = Replay { to: address, trace: &trace, rate: 20.0, more: &["--model", "sim-model"] };
    let folder = tempfile::tempdir()?;
    let mut process = replay.start(folder.path())?;
    wait_until("the replay has begun", || begun(&folder.path().join("run/requests.jsonl")))?;
    agent.process().signal(Signal::SIGKILL)?;
    // The kernel takes a dead process's links down in the background.
    wait_until("its programs are gone", || Ok(held.is_disjoint(&programs_on("lo")?)))?;

    let finished = process.wait(Duration::from_secs(30))?;
    assert!(finished.status.success(), "{}: {}", finished.status, finished.stderr);
    let requests = jsonl::read(&folder.path().join("run/requests.jsonl"))?;
    assert_eq!(requests.len(), ROWS);
    assert!(requests.iter().all(|row| jsonl::text(row, "class") == "ok"));
    Ok(())
}

fn begun(requests: &Path) -> anyhow::Result<bool> {
    Ok(std::fs::read(requests).is_ok_and(|text| text.contains(&b'\n')))
}

fn wait_until(what: &str, reached: impl Fn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !reached()? {
        anyhow::ensure!(Instant::now() < deadline, "10 s passed before {what}");
        std::thread::yield_now();
    }
    Ok(())
}
