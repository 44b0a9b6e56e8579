//! goodput-bench: what the agent costs and whether it loses anything. `cargo xtask bench` and
//! `cargo xtask soak` build and call it.
#![forbid(unsafe_code)]

mod agent;
mod host;
mod load;
mod measure;
mod remote;
mod report;
mod soak;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What the agent costs and whether it loses anything.
#[derive(Parser)]
#[command(name = "goodput-bench", max_term_width = 110)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve and read streams at a fixed rate; started by the other commands.
    Load(load::Plan),
    /// Completeness and overhead of the agent.
    Agent(measure::Args),
    /// Connection churn: memory and tables must return to where they were.
    Soak(soak::Args),
}

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Load(plan) => load::run(&plan).map(|()| ExitCode::SUCCESS),
        Command::Agent(args) => measure::run(&args),
        Command::Soak(args) => soak::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
