//! `cargo xtask calibrate`: coverage and error rates of what is published, on simulated campaigns.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::rundir::to_json;
use analyzer::stats::calibration::{Calibrated, Scenario, calibrate};
use anyhow::Context as _;
use clap::Parser;
use serde::Serialize;

/// Coverage and error rates of what is published.
#[derive(Parser)]
struct Args {
    /// Simulated campaigns of each scenario
    #[arg(long, default_value_t = 20_000)]
    campaigns: u32,
    /// Seed of the simulation
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// The file to write
    #[arg(long)]
    out: PathBuf,
}

#[derive(Serialize)]
struct File {
    schema: &'static str,
    seed: u64,
    passed: bool,
    scenarios: Vec<Calibrated>,
}

/// At five repetitions, the default. At ten the power is such that false EQUIVALENT is its nominal 5 %, so that a
/// bound of 5 % would be a matter of the seed.
fn gated(figures: &Calibrated) -> bool {
    figures.scenario.repetitions == 5
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let scenarios: Vec<Calibrated> = [(5, 0.0), (5, 0.02), (10, 0.0), (10, 0.02)]
        .map(|(repetitions, correlation)| {
            calibrate(Scenario { repetitions, correlation }, args.campaigns, args.seed)
        })
        .to_vec();
    let passed = scenarios.iter().filter(|it| gated(it)).all(|figures| figures.passed);
    let file = File { schema: "goodput.calibration-run/1", seed: args.seed, passed, scenarios };
    std::fs::write(&args.out, to_json(&file)?)
        .with_context(|| format!("cannot write {}", args.out.display()))?;
    println!(
        "{:>4} {:>6}  {:>9} {:>9} {:>9}  {:>9} {:>16}",
        "reps", "icc", "published", "bootstrap", "pooled", "false win", "false EQUIVALENT"
    );
    for figures in &file.scenarios {
        println!(
            "{:>4} {:>6}  {:>9.4} {:>9.4} {:>9.4}  {:>9.4} {:>16.4}  {}",
            figures.scenario.repetitions,
            figures.scenario.correlation,
            figures.coverage_published,
            figures.coverage_bootstrap,
            figures.coverage_pooled,
            figures.false_wins,
            figures.false_equivalent,
            match (gated(figures), figures.passed) {
                (false, _) => "shown",
                (true, true) => "pass",
                (true, false) => "FAIL",
            }
        );
    }
    println!("{} campaigns each; written to {}", args.campaigns, args.out.display());
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
