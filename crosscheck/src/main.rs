//! `goodput-crosscheck`: a second opinion on a run directory.
#![forbid(unsafe_code)]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use crosscheck::{Report, RunDir, check};

const EXAMPLES: &str = "Examples:
  goodput-crosscheck runs/2026-11-30
  goodput-crosscheck runs/2026-11-30 --json | jq '.disagreements[0]'

Exit codes: 0 every figure agrees, 1 one does not, 2 bad input. `goodput verify` runs this.";

/// Computes the figures of a run directory a second time, sharing no code with `goodput`, and compares them
#[derive(Debug, Parser)]
#[command(name = "goodput-crosscheck", version, after_help = EXAMPLES)]
struct Cli {
    /// The run directory, analysed
    #[arg(value_name = "DIR")]
    run_dir: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("goodput-crosscheck: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<bool> {
    let report = check(&RunDir::new(&cli.run_dir))?;
    let mut out = std::io::stdout().lock();
    if cli.json {
        writeln!(out, "{:#}", report.to_json())?;
    } else {
        out.write_all(text(&report).as_bytes())?;
    }
    Ok(report.agrees())
}

fn text(report: &Report) -> String {
    let wrong = report.disagreements.len();
    let mut text = String::new();
    for it in report.disagreements.iter().take(20) {
        text += &format!("{}: {}: said {}, found {}\n", it.place, it.rule, it.said, it.found);
    }
    if wrong > 20 {
        text += &format!("and {} more: --json lists them\n", wrong - 20);
    }
    let word = if report.agrees() { "agrees" } else { "DISAGREES" };
    text + &format!("{word}: {wrong} of {} figures differ\n", report.compared)
}
