//! `cargo xtask calibrate`: whether the published intervals keep their promise, on simulated campaigns.

use std::process::ExitCode;

use anyhow::Context as _;

use crate::process::{cargo, root};

/// Coverage, false wins and false EQUIVALENT of what is published; writes target/calibration.json.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Simulated campaigns of each scenario.
    #[arg(long, default_value = "20000")]
    campaigns: u32,
    /// Seed of the simulation.
    #[arg(long, default_value = "7")]
    seed: u64,
}

/// Exit code 1 when a figure leaves its bounds.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let target = root().join("target");
    std::fs::create_dir_all(&target)
        .with_context(|| format!("cannot make {}", target.display()))?;
    let mut command =
        cargo(["run", "--quiet", "--package", "analyzer", "--example", "calibrate", "--"]);
    command.arg("--out").arg(target.join("calibration.json"));
    command.args(["--campaigns", &args.campaigns.to_string(), "--seed", &args.seed.to_string()]);
    let status = command.status().context("cannot start cargo")?;
    let code = status.code().context("the calibration was ended by a signal")?;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(2)))
}
