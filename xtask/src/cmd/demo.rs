//! `cargo xtask demo`: the main job on the embedded fleet, from a clean clone.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::process::{Background, cargo, check, root};

/// Round robin against cache-aware on a simulated fleet, watched in the kernel.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Fewer repetitions, under a minute; the verdict must then ask for more.
    #[arg(long)]
    quick: bool,
    /// Let the cache-aware gateway secretly route round robin: the verdict must name it.
    #[arg(long)]
    silent_fallback: bool,
}

/// Builds, starts fleet and agent, runs the campaign and stops what it started.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    build()?;
    let start = Instant::now();
    let run_dir = root().join("target/demo/run");
    let _fleet = start_fleet(args)?;
    let agent = start_agent()?;
    let code = run_campaign(args, &run_dir, agent.is_some())?;
    eprintln!(
        "demo: {:.0} s after the build; run directory {}",
        start.elapsed().as_secs_f64(),
        relative(&run_dir)
    );
    Ok(code)
}

fn build() -> anyhow::Result<()> {
    check(&mut cargo([
        "build",
        "--release",
        "-p",
        "agent",
        "-p",
        "analyzer",
        "-p",
        "crosscheck",
        "-p",
        "simfleet",
    ]))
}

fn binary(name: &str) -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join("release").join(name)
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn start_fleet(args: &Args) -> anyhow::Result<Background> {
    let mut command = Command::new(binary("simfleet"));
    command.arg("run").arg(root().join("demo/fleet.toml")).current_dir(root());
    if args.silent_fallback {
        command.args(["--silent-fallback", "cache-aware"]);
    }
    let mut fleet = spawn("simfleet", &mut command)?;
    if ready_line(&mut fleet)?.is_none() {
        bail!("the simulated fleet did not start; its message is above");
    }
    Ok(fleet)
}

/// Starts the agent where it may; its own message names what is missing elsewhere.
fn start_agent() -> anyhow::Result<Option<Background>> {
    let mut command = Command::new(binary("goodput-agent"));
    command.arg("run").arg("--config").arg(root().join("demo/agent.toml")).current_dir(root());
    let mut agent = spawn("goodput-agent", &mut command)?;
    if ready_line(&mut agent)?.is_none() {
        eprintln!("demo: the agent could not start (its message is above): kernel: not observed");
        return Ok(None);
    }
    Ok(Some(agent))
}

fn spawn(name: &'static str, command: &mut Command) -> anyhow::Result<Background> {
    let child = command
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    Ok(Background::new(name, child))
}

/// The line that a server prints once it listens; none when it ended instead.
fn ready_line(server: &mut Background) -> anyhow::Result<Option<String>> {
    let pipe = server.child().stdout.take().context("the server's output is not captured")?;
    let mut lines = BufReader::new(pipe).lines();
    let first = lines.next().transpose()?;
    // The pipe must stay open and be emptied: a server that prints later would otherwise block or die.
    std::thread::spawn(move || lines.for_each(drop));
    Ok(first.filter(|line| line.contains("\"ready\":true")))
}

/// The demo's campaign without its agents, beside the run directory: a host that may not attach registers that
/// nobody watches, instead of overriding what was registered.
fn unobserved(run_dir: &Path) -> anyhow::Result<PathBuf> {
    let demo = root().join("demo");
    let text = std::fs::read_to_string(demo.join("campaign.toml"))?;
    let path = run_dir.with_file_name("campaign-unobserved.toml");
    std::fs::create_dir_all(path.parent().context("the run directory has no parent")?)?;
    std::fs::write(&path, without_agents(&text, &demo))?;
    Ok(path)
}

/// Drops the `[[agent]]` tables, which come last, and names the trace's files by their place in `demo`.
fn without_agents(campaign: &str, demo: &Path) -> String {
    let kept = campaign.split("[[agent]]").next().unwrap_or(campaign);
    let at = |name: &str| format!("\"{}\"", demo.join(name).display());
    kept.replace("\"trace.jsonl\"", &at("trace.jsonl"))
        .replace("\"trace.origin.json\"", &at("trace.origin.json"))
}

fn run_campaign(args: &Args, run_dir: &Path, observed: bool) -> anyhow::Result<ExitCode> {
    let mut command = Command::new(binary("goodput"));
    let campaign = if observed { "demo/campaign.toml".into() } else { unobserved(run_dir)? };
    command.arg("run").arg(campaign).args(["--replace", "--run-dir"]).arg(run_dir);
    command.current_dir(root());
    if args.quick {
        command.arg("--quick");
    }
    let status = command.status().context("cannot start goodput")?;
    let code = status.code().context("goodput was ended by a signal")?;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_that_nobody_watches_lists_no_agent_and_keeps_its_files() {
        let text = include_str!("../../../demo/campaign.toml");
        let kept = without_agents(text, Path::new("/there"));
        assert!(text.contains("[[agent]]") && !kept.contains("[[agent]]"));
        assert!(kept.contains("path = \"/there/trace.jsonl\""), "{kept}");
        assert!(kept.contains("origin = \"/there/trace.origin.json\""), "{kept}");
        assert_eq!(kept.matches("[[backend]]").count(), text.matches("[[backend]]").count());
    }
}
