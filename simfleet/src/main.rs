//! A simulated inference fleet with real sockets: backends, gateway and faults.

mod cmd;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  simfleet example > fleet.toml     write a commented fleet file
  simfleet run fleet.toml           start it; one JSON line says where everything listens
  simfleet faults                   list the faults that a backend or gateway can commit

Exit codes: 0 after SIGINT or SIGTERM, 2 for a file, a name or an address that can't be used (the message names
place and mend), 1 for anything else.

Everything this program serves is simulated: no model runs, and the gateway is not LoxiLB.";

/// Simulates an inference fleet on real sockets: backends, a LoxiLB-shaped gateway, and faults.
#[derive(Parser)]
#[command(name = "simfleet", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start the fleet that a file describes, until SIGINT or SIGTERM.
    Run(cmd::run::Args),
    /// Print a commented fleet file.
    Example,
    /// List the faults by name.
    Faults,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => cmd::run::run(&args),
        Command::Example => cmd::example::run(),
        Command::Faults => cmd::faults::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("simfleet: {}", cmd::message(&error));
            cmd::exit_code(&error)
        }
    }
}
