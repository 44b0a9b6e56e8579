//! `goodput-bench agent`: every part in turn, then the report.

mod compare;
pub(crate) mod completeness;
mod floor;
mod kernel;
mod memory;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::host::Host;
use crate::report::Report;

/// Options of the bench.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The agent to measure.
    #[arg(long, value_name = "FILE")]
    pub(crate) agent: PathBuf,
    /// Where the report goes.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Shorter parts, under a minute: no figure to publish.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print JSON instead of the table.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// A length in seconds: `full`, or `quick` when the bench is to be short.
    pub(crate) fn seconds(&self, full: u64, quick: u64) -> u64 {
        if self.quick { quick } else { full }
    }

    /// Repetitions of each measurement.
    pub(crate) fn repeats(&self) -> usize {
        if self.quick { 2 } else { 5 }
    }
}

/// Measures, writes the report, prints it; exit code 1 when anything was lost.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut report = Report::new(Host::read()?, args.quick);
    completeness::run(args, &mut report)?;
    kernel::run(args, &mut report)?;
    memory::run(args, &mut report)?;
    compare::run(args, &mut report)?;
    report.judge();
    let text = serde_json::to_string_pretty(&report)?;
    let folder = args.out.parent().context("--out names no file")?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(&args.out, format!("{text}\n"))?;
    if args.json {
        println!("{text}");
    } else {
        report.print();
    }
    Ok(if report.complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
