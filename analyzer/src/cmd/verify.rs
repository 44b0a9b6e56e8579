//! `goodput verify`: phase 5 again, from the records of a run directory.

use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::run::analyze_dir;

use super::judged;

/// Arguments of `goodput verify`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run directory
    run_dir: PathBuf,
    /// Print verdict.json
    #[arg(long)]
    json: bool,
}

/// Judges anew. Exit code 0 for PUBLISHABLE, PUBLISHABLE_WITH_FOOTNOTE and ADD_REPLICATES, 1 for DISCARDED.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    judged::print(&analyze_dir(&args.run_dir)?, args.json)
}
