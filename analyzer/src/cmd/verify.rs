//! `goodput verify`: phase 5 again, from the records of a run directory.

use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::run::analyze_dir;
use analyzer::verify::CrosscheckProgram;

use super::judged;

const EXAMPLES: &str = "Examples:
  goodput verify runs/2026-11-30
  goodput verify runs/2026-11-30 --json | jq -r '.findings[].code'

Exit codes: 0 may be published (PUBLISHABLE, PUBLISHABLE_WITH_FOOTNOTE), 1 may not (ADD_REPLICATES, DISCARDED),
2 bad input.";

/// Arguments of `goodput verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The run directory
    #[arg(value_name = "DIR")]
    run_dir: PathBuf,
    /// Print verdict.json
    #[arg(long)]
    json: bool,
}

/// Judges anew. Exit code 0 for PUBLISHABLE and PUBLISHABLE_WITH_FOOTNOTE, 1 for ADD_REPLICATES and DISCARDED.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    judged::gate(&analyze_dir(&args.run_dir, &CrosscheckProgram)?, args.json)
}
