//! The `goodput` command: a thin shell over the `analyzer` library.
#![forbid(unsafe_code)]

mod cmd;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    cmd::run(&cmd::Cli::parse())
}
