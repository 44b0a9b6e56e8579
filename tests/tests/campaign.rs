//! `goodput run` from its file to its verdict.

use e2e::agent::Agent;
use e2e::campaign::{fleet, run, watch};
use e2e::jsonl::object;
use e2e::require_kernel;

#[test]
fn two_repetitions_ask_for_more_and_say_what_was_not_observed() -> anyhow::Result<()> {
    let fleet = fleet("")?;
    let folder = tempfile::tempdir()?;
    let finished = run(folder.path(), &fleet, None)?;
    let said = format!("{}\n{}", finished.stdout, finished.stderr);
    assert!(finished.stdout.contains("calibration: declared, kernel: not observed"), "{said}");
    assert!(!finished.stdout.contains("verdict: PUBLISHABLE"), "{said}");
    for name in ["analysis.json", "verdict.json", "manifest.json", "health.json"] {
        object(&folder.path().join("run").join(name))?;
    }
    Ok(())
}

#[test]
fn an_observed_campaign_of_two_repetitions_asks_for_more() -> anyhow::Result<()> {
    require_kernel!();
    let fleet = fleet("")?;
    let agent = Agent::start(&watch(&fleet)?)?;
    let folder = tempfile::tempdir()?;
    let finished = run(folder.path(), &fleet, Some(agent.api()))?;
    let said = format!("{}\n{}", finished.stdout, finished.stderr);
    let verdict = "verdict: ADD_REPLICATES (calibration: declared, kernel: observed)";
    assert!(finished.status.success() && finished.stdout.contains(verdict), "{said}");
    let add = &object(&folder.path().join("run/verdict.json"))?["add_replicates"];
    assert!(add["command"].as_str().is_some_and(|it| it.contains("--resume")), "{add}");
    Ok(())
}

#[test]
fn a_silent_fallback_wins_nothing_and_is_named() -> anyhow::Result<()> {
    let fleet = fleet("silent_fallback = true")?;
    let folder = tempfile::tempdir()?;
    let finished = run(folder.path(), &fleet, None)?;
    let said = format!("{}\n{}", finished.stdout, finished.stderr);
    assert_eq!(finished.status.code(), Some(1), "{said}");
    assert!(finished.stdout.contains("win: none claimed"), "{said}");
    assert!(finished.stdout.contains("decision proof, aware: FAILED"), "{said}");
    Ok(())
}
