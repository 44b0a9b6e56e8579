//! `cargo xtask bench` and `cargo xtask soak`: built optimised, the agent static as it is shipped.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::packages;
use crate::process::{cargo, check, root};
use crate::static_build::{binary, build};

/// What the product costs and whether it loses anything.
#[derive(Parser)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Completeness and overhead of the agent; writes target/bench/agent.json.
    Agent {
        /// Shorter parts, under a minute: no figure to publish.
        #[arg(long)]
        quick: bool,
        /// Print JSON instead of the table.
        #[arg(long)]
        json: bool,
    },
    /// What analysing a million requests and an interval of a quantile cost; writes
    /// target/bench/analyze.json.
    Analyze {
        /// A twentieth of the requests, a tenth of the samples: no figure to publish.
        #[arg(long)]
        quick: bool,
        /// Print JSON instead of the table.
        #[arg(long)]
        json: bool,
    },
    /// Replay, simulated fleet and agent on this host: 200 streams, 20,000 events a second, nothing lost.
    Fleet {
        /// How long the streams last.
        #[arg(long, default_value = "60")]
        seconds: u32,
    },
}

/// Connection churn: the agent's memory and maps must return to where they were.
#[derive(clap::Args)]
pub(crate) struct SoakArgs {
    /// How long.
    #[arg(long, default_value = "10")]
    minutes: u64,
}

/// Builds and measures; exit code 1 when anything was lost.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (quick, json) = match args.what {
        What::Agent { quick, json } => (quick, json),
        What::Analyze { quick, json } => return analyze(quick, json),
        What::Fleet { seconds } => return fleet(seconds),
    };
    packages::ensure(&[("tcpdump", "tcpdump")])?;
    let mut command = prepared("agent")?;
    command.arg("--out").arg(root().join("target/bench/agent.json"));
    command.args(quick.then_some("--quick")).args(json.then_some("--json"));
    finish(command)
}

/// The analyzer's own bench, with scipy beside it.
fn analyze(quick: bool, json: bool) -> anyhow::Result<ExitCode> {
    let python = scipy()?;
    // Verification starts the second computation that lies beside it.
    check(&mut cargo(["build", "--release", "--package", "crosscheck"]))?;
    let mut command = cargo(["bench", "--package", "analyzer", "--bench", "analyze", "--"]);
    command.arg("--out").arg(root().join("target/bench/analyze.json"));
    command.arg("--python").arg(python);
    command.args(quick.then_some("--quick")).args(json.then_some("--json"));
    check(&mut command)?;
    Ok(ExitCode::SUCCESS)
}

/// The Python of a virtual environment that holds scipy, made when it is not there.
fn scipy() -> anyhow::Result<PathBuf> {
    let folder = root().join("target/bench/scipy");
    let python = folder.join("bin/python");
    let holds = |python: &Path| {
        let mut command = Command::new(python);
        command.args(["-c", "import scipy.stats"]).output().is_ok_and(|out| out.status.success())
    };
    if !holds(&python) {
        packages::ensure(&[("python3", "python3-venv")])?;
        check(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        check(Command::new(&python).args(["-m", "pip", "install", "--quiet", "scipy"]))?;
    }
    Ok(python)
}

/// The end-to-end test of completeness in its long form, with optimised programs.
fn fleet(seconds: u32) -> anyhow::Result<ExitCode> {
    let mut command = cargo(["test", "--release", "--package", "e2e", "--test", "completeness"]);
    command.args(["--", "--nocapture"]).env("GOODPUT_REQUIRE_KERNEL", "1");
    check(command.env("GOODPUT_COMPLETENESS_S", seconds.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

/// Builds and soaks; exit code 1 on growth.
pub(crate) fn soak(args: &SoakArgs) -> anyhow::Result<ExitCode> {
    let mut command = prepared("soak")?;
    command.arg("--minutes").arg(args.minutes.to_string());
    finish(command)
}

fn prepared(subcommand: &str) -> anyhow::Result<Command> {
    build(&["agent", "bench"])?;
    let mut command = Command::new(binary("goodput-bench"));
    command.arg(subcommand).arg("--agent").arg(binary("goodput-agent"));
    Ok(command)
}

fn finish(mut command: Command) -> anyhow::Result<ExitCode> {
    let status = command.status().context("cannot start goodput-bench")?;
    let code = status.code().context("goodput-bench was ended by a signal")?;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(2)))
}
