//! `goodput-agent selftest`.

use std::io::Write as _;
use std::process::ExitCode;

use crate::config::SourceKind;
use crate::selftest::{Report, run};

const EXAMPLES: &str = "Examples:
  sudo goodput-agent selftest
  sudo goodput-agent selftest --source socket-filter --json | jq '.checks[] | select(.ok | not)'

It serves scripted streams to itself on loopback ports that nothing else uses and takes about two \
seconds. Exit codes: 0 every observation was right, 1 one was wrong, 2 this host can't run it.";

/// Options of `selftest`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SelftestArgs {
    /// Source to prove
    #[arg(long, default_value = "auto")]
    source: SourceKind,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints every comparison.
pub(super) fn execute(args: &SelftestArgs) -> anyhow::Result<ExitCode> {
    let report = run(args.source)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    } else {
        print_table(&mut out, &report)?;
    }
    Ok(if report.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_table(out: &mut impl std::io::Write, report: &Report) -> std::io::Result<()> {
    for check in &report.checks {
        let verdict = if check.ok { "ok" } else { "WRONG" };
        writeln!(out, "{verdict:>5}  {:<30}  {}", check.name, check.observed)?;
        if !check.ok {
            writeln!(out, "{:>39}expected: {}", "", check.expected)?;
        }
    }
    let right = report.checks.iter().filter(|check| check.ok).count();
    let of = report.checks.len();
    writeln!(out, "{right} of {of} right; source {}, Linux {}", report.source, report.kernel)
}
