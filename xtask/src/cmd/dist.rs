//! `cargo xtask dist --agent`: one static binary, tried where nothing else is installed.

use std::process::ExitCode;

use anyhow::bail;

use crate::bare_root;
use crate::static_build::{self, Distribution};

/// One static binary of the agent, tried in a bare root.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Build the agent.
    #[arg(long)]
    agent: bool,
    /// Do not try the binary in a bare root (no root privilege needed).
    #[arg(long)]
    untried: bool,
}

/// Builds, checks, and tries.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if !args.agent {
        bail!("nothing to build: name it, as in cargo xtask dist --agent");
    }
    static_build::build(&["agent"])?;
    let distribution = static_build::distribute()?;
    let Distribution { path, bytes, sha256 } = &distribution;
    println!("{}: {:.1} MiB stripped, static", path.display(), to_mib(*bytes));
    println!("sha256 {sha256}");
    if !args.untried {
        bare_root::try_out(path)?;
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::cast_precision_loss, reason = "a file's size fits 53 bits")]
fn to_mib(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}
