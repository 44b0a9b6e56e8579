//! `goodput analyze`: phase 4 again, from the records of a run directory.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::report::summary;
use analyzer::run::analyze_dir;
use analyzer::rundir::to_json;
use analyzer::verify::CrosscheckProgram;

const EXAMPLES: &str = "Examples:
  goodput analyze runs/2026-11-30
  goodput analyze runs/2026-11-30 --json | jq .arms

Exit codes: 0 analysed, whatever the verdict; 2 bad input.";

/// Arguments of `goodput analyze`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The run directory
    #[arg(value_name = "DIR")]
    run_dir: PathBuf,
    /// Print analysis.json
    #[arg(long)]
    json: bool,
}

/// Writes `analysis.json` and `verdict.json` anew and prints the figures. Exit code 0: whether they may
/// be published is what `goodput verify` answers.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let judged = analyze_dir(&args.run_dir, &CrosscheckProgram)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        out.write_all(&to_json(&judged.analysis)?)?;
    } else {
        out.write_all(summary(&judged.analysis, &judged.verdict).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}
