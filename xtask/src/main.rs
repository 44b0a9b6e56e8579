//! The project's own commands: `cargo xtask test`, `cargo xtask demo`, `cargo xtask ebpf`.

mod cmd;
mod ebpf;
mod process;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", max_term_width = 110)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything that must pass before a change lands; installs what it needs.
    Test(cmd::test::Args),
    /// The main job on the embedded fleet: round robin against cache-aware, watched in the kernel.
    Demo(cmd::demo::Args),
    /// Rebuild or check the object of the kernel programs.
    Ebpf(cmd::ebpf::Args),
}

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Test(args) => cmd::test::run(&args),
        Command::Demo(args) => cmd::demo::run(&args),
        Command::Ebpf(args) => cmd::ebpf::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
