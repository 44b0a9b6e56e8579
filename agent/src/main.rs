//! goodput-agent: eBPF capture of inference streams on gateway and backend hosts.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use agent::cmd::{Cli, EXIT_USAGE};
use agent::logging::{printable, subscriber};
use clap::Parser as _;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt as _;

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_env("GOODPUT_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    subscriber(filter, colours, std::io::stderr).init();
    match Cli::parse().execute() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("goodput-agent: {}", printable(&format!("{error:#}")));
            ExitCode::from(EXIT_USAGE)
        }
    }
}
