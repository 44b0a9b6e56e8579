//! The command line: one file per subcommand, one enum that names them all.
//!
//! Exit codes: 0 done, 1 done but the answer is no (a gate failed, a what-if was printed), 2 bad input
//! or environment, with a message that names the mend.

mod progress;
pub(crate) mod replay;
mod replay_summary;
pub(crate) mod signals;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Bad input or environment: nothing was measured.
const EXIT_BAD_INPUT: u8 = 2;

/// Replays a real trace through a gateway and turns it into goodput@SLO and a verdict.
#[derive(Debug, Parser)]
#[command(name = "goodput", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replay a trace against one URL and record every request
    Replay(replay::Args),
}

/// Runs the chosen subcommand; an error is printed with its whole chain of causes and becomes exit code 2.
pub(crate) fn run(cli: &Cli) -> ExitCode {
    let result = match &cli.command {
        Command::Replay(args) => replay::run(args),
    };
    result.unwrap_or_else(|error| {
        eprintln!("goodput: {error:#}");
        ExitCode::from(EXIT_BAD_INPUT)
    })
}
