//! `goodput probe`: phases 0 and 2 alone.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::run::{Existing, RunOptions, probe_only};
use analyzer::rundir::{Concentration, ProbeFile, to_json};

use super::campaign_progress::CampaignProgress;
use super::signals::StopOnSignal;

const EXAMPLES: &str = "Examples:
  goodput probe campaign.toml --run-dir probes/monday
  goodput probe campaign.toml --run-dir probes/monday --replace --json

Exit codes: 0 every arm is in the mode that it expects, 1 one is not, 2 bad input.";

/// Arguments of `goodput probe`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The campaign file
    campaign: PathBuf,
    /// Directory for the records [default: the campaign's run directory]
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// Remove the run that is in that directory
    #[arg(long)]
    replace: bool,
    /// Measure without the agents that the campaign lists
    #[arg(long)]
    without_agent: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

/// Bursts cache-keyed traffic through every arm. Exit code 1 when an arm is not in the mode it expects.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let stop = StopOnSignal::install()?;
    let options = RunOptions {
        run_dir: args.run_dir.clone(),
        existing: if args.replace { Existing::Replace } else { Existing::Refuse },
        without_agent: args.without_agent,
        ..RunOptions::default()
    };
    let probes = probe_only(&args.campaign, options, stop.flag(), &mut CampaignProgress)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        out.write_all(&to_json(&probes)?)?;
    } else {
        for probe in &probes {
            writeln!(out, "{}", line(probe))?;
        }
    }
    let confirmed = probes.iter().all(|probe| probe.gateway.mismatches.is_empty());
    Ok(if confirmed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn line(probe: &ProbeFile) -> String {
    let roles: Vec<String> = probe
        .concentration
        .iter()
        .map(|(role, concentration)| match concentration {
            Concentration::Ratio { ratio, .. } => format!("{role} peak/mean {ratio:.2}"),
            Concentration::Idle => format!("{role} idle"),
            Concentration::NotObserved => format!("{role} not observed"),
        })
        .collect();
    let mode = match probe.gateway.mismatches.as_slice() {
        [] => "mode confirmed".to_owned(),
        mismatches => format!("MODE_MISMATCH: {}", mismatches.join("; ")),
    };
    let ProbeFile { arm, completed, requests, .. } = probe;
    format!("{arm}: {completed} of {requests} completed; {}; {mode}", roles.join(", "))
}
