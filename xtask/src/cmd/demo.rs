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
    check(&mut cargo(["build", "--release", "-p", "agent", "-p", "analyzer", "-p", "simfleet"]))
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

fn run_campaign(args: &Args, run_dir: &Path, observed: bool) -> anyhow::Result<ExitCode> {
    let mut command = Command::new(binary("goodput"));
    command.arg("run").arg("demo/campaign.toml").args(["--replace", "--run-dir"]).arg(run_dir);
    command.current_dir(root());
    if args.quick {
        command.arg("--quick");
    }
    if !observed {
        command.arg("--without-agent");
    }
    let status = command.status().context("cannot start goodput")?;
    let code = status.code().context("goodput was ended by a signal")?;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(2)))
}
