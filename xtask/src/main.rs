//! The project's own commands: `cargo xtask --help` lists them.

mod bare_root;
mod cmd;
mod ebpf;
mod guest;
#[cfg(test)]
mod named_tests;
mod packages;
mod process;
mod static_build;

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
    /// One static binary to copy to hosts, tried where nothing else is installed.
    Dist(cmd::dist::Args),
    /// The agent's self-test under other kernels, in software emulation.
    Kernels(cmd::kernels::Args),
    /// What the product costs and whether it loses anything.
    Bench(cmd::bench::Args),
    /// Every decoder of foreign bytes under libFuzzer.
    Fuzz(cmd::fuzz::Args),
    /// Minutes of connection churn: the agent must not grow.
    Soak(cmd::bench::SoakArgs),
    /// Coverage and error rates of the published statistics on simulated campaigns.
    Calibrate(cmd::calibrate::Args),
}

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Test(args) => cmd::test::run(&args),
        Command::Demo(args) => cmd::demo::run(&args),
        Command::Ebpf(args) => cmd::ebpf::run(&args),
        Command::Dist(args) => cmd::dist::run(&args),
        Command::Kernels(args) => cmd::kernels::run(&args),
        Command::Bench(args) => cmd::bench::run(&args),
        Command::Fuzz(args) => cmd::fuzz::run(&args),
        Command::Soak(args) => cmd::bench::soak(&args),
        Command::Calibrate(args) => cmd::calibrate::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
