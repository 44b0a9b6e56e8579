//! `goodput selfcheck`: the rules behind a verdict against known answers.

use std::io::Write as _;
use std::process::ExitCode;

use analyzer::rundir::to_json;
use analyzer::selfcheck::{lines, selfcheck};

const EXAMPLES: &str = "Examples:
  goodput selfcheck --json | jq '.modules[] | {name, checks: (.checks | length)}'
  goodput selfcheck

It needs no file and no network. Exit codes: 0 every check holds, 1 one does not.";

/// Arguments of `goodput selfcheck`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print every check as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the checks and prints them module by module.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let result = selfcheck();
    let mut out = std::io::stdout().lock();
    if args.json {
        out.write_all(&to_json(&result)?)?;
    } else {
        out.write_all(lines(&result).as_bytes())?;
    }
    Ok(if result.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
