//! What analysis and verification of a large campaign cost, and what an interval of a quantile costs beside
//! scipy's. `cargo xtask bench analyze` builds and calls it; docs/testing.md explains the figures.
#![forbid(unsafe_code)]

mod campaign;
mod phases;
mod programs;
mod quantiles;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// What analysis and verification cost.
#[derive(Parser)]
#[command(name = "bench analyze")]
struct Args {
    /// Where the figures go.
    #[arg(long)]
    out: PathBuf,
    /// A Python that can import scipy; without one nothing is compared with scipy.
    #[arg(long)]
    python: Option<PathBuf>,
    /// Keep the campaign's run directory here.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// A twentieth of the requests and a tenth of the samples: no figure to publish.
    #[arg(long)]
    quick: bool,
    /// Print JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    run(&Args::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let folder = tempfile::tempdir()?;
    let run_dir = args.keep.as_deref().unwrap_or(folder.path());
    std::fs::create_dir_all(run_dir)?;
    let plan = campaign::Plan::new(args.quick);
    eprintln!("writing a campaign of {} requests", plan.requests());
    let bytes = campaign::write(&plan, run_dir)?;
    eprintln!("goodput analyze and goodput verify, {} MB", bytes / 1_000_000);
    let costs = programs::measure(run_dir)?;
    eprintln!("intervals of p50 and p99, here and by scipy");
    let quantiles = quantiles::measure(args.python.as_deref(), folder.path(), args.quick)?;
    let report = report::Report::new(args.quick, plan.requests(), bytes, costs, quantiles);
    report.write(&args.out)?;
    report.print(args.json)?;
    Ok(ExitCode::SUCCESS)
}
