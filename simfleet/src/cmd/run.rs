//! `simfleet run`: serve until told to stop.

use std::io::IsTerminal as _;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use simfleet::{Fleet, FleetConfig, FleetError};
use tokio::signal::unix::{SignalKind, signal};

/// Arguments of `run`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The fleet file (TOML); `simfleet example` prints one.
    config: PathBuf,
    /// Let this gateway claim its policy and secretly route round robin.
    #[arg(long, value_name = "GATEWAY")]
    silent_fallback: Option<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colours)
        .with_writer(std::io::stderr)
        .init();
    let mut config = FleetConfig::from_path(&args.config)?;
    if let Some(name) = &args.silent_fallback {
        fall_back(&mut config, name)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(config))
}

async fn serve(config: FleetConfig) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM handler")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT handler")?;
    let fleet = Fleet::start(config).await?;
    let line = serde_json::to_string(fleet.ready())?;
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).context("writing the ready line")?;
    drop(stdout);
    eprintln!("simfleet: simulated fleet is up; SIGINT or SIGTERM ends it");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    drop(fleet);
    Ok(())
}

fn fall_back(config: &mut FleetConfig, name: &str) -> Result<(), FleetError> {
    let Some(gateway) = config.gateways.iter_mut().find(|gateway| gateway.name == name) else {
        return Err(FleetError::Invalid {
            place: "--silent-fallback".to_owned(),
            problem: format!("the fleet file has no gateway named {name}"),
            mend: "name one of its gateways".to_owned(),
        });
    };
    gateway.policy.silent_fallback = true;
    Ok(())
}
