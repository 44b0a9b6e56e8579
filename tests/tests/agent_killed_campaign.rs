//! SIGKILL of the agent during a campaign: the replay finishes and says `complete: false`.

use std::path::Path;
use std::time::{Duration, Instant};

use e2e::agent::Agent;
use e2e::campaign::{fleet, start, watch};
use e2e::jsonl::object;
use e2e::require_kernel;
use nix::sys::signal::Signal;

#[test]
fn a_campaign_outlives_its_agent_and_says_what_is_missing() -> anyhow::Result<()> {
    require_kernel!();
    let fleet = fleet("")?;
    let agent = Agent::start(&watch(&fleet)?)?;
    let folder = tempfile::tempdir()?;
    let mut campaign = start(folder.path(), &fleet, Some(agent.api()))?;
    let run = folder.path().join("run");
    let first = run.join("floor-r40/rep1/requests.jsonl");
    wait_for_a_line(&first)?;
    agent.process().signal(Signal::SIGKILL)?;

    let finished = campaign.wait(Duration::from_secs(90))?;
    let said = format!("{}\n{}", finished.stdout, finished.stderr);
    assert!(finished.stdout.contains("kernel: incomplete"), "{said}");
    assert!(finished.stdout.contains("agent_unreachable"), "{said}");
    for cell in ["floor-r40/rep1", "aware-r40/rep2"] {
        let info = object(&run.join(cell).join("run.json"))?;
        assert_eq!(info["agents"][0]["complete"], false, "{cell}: {info}");
        assert_eq!(info["attempted"], 40, "{cell}: {info}");
    }
    Ok(())
}

fn wait_for_a_line(file: &Path) -> anyhow::Result<()> {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !std::fs::read(file).is_ok_and(|text| text.contains(&b'\n')) {
        anyhow::ensure!(Instant::now() < deadline, "{} got no line in 60 s", file.display());
        std::thread::yield_now();
    }
    Ok(())
}
