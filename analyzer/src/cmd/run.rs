//! `goodput run`: a campaign from its file to its verdict.

use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::run::{Existing, RunError, RunOptions};

use super::campaign_progress::CampaignProgress;
use super::judged;
use super::signals::StopOnSignal;

/// `--quick`: one repetition, and a probe just long enough to show a concentration.
const QUICK_REPETITIONS: u32 = 1;
const QUICK_PROBE_SECONDS: f64 = 2.0;

const EXAMPLES: &str = "Examples:
  goodput run campaign.toml
  goodput run campaign.toml --quick --replace       one repetition, to see that everything answers
  goodput run campaign.toml --resume                after Ctrl-C or a crash
  goodput run campaign.toml --resume --repetitions 9
  goodput run campaign.toml --json | jq -r .verdict

Exit codes: 0 a verdict other than DISCARDED, 1 DISCARDED, 2 bad input, 128 + signal when interrupted.";

/// Arguments of `goodput run`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The campaign file; demo/campaign.toml is a commented example
    campaign: PathBuf,
    /// Run directory [default: the campaign's]
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// Repetitions of each cell to have at the end [default: the campaign's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: Option<u32>,
    /// Remove the run that is in the run directory
    #[arg(long, conflicts_with = "resume")]
    replace: bool,
    /// Continue the run that is in the run directory: finished repetitions are kept
    #[arg(long)]
    resume: bool,
    /// Measure without the agents that the campaign lists; the verdict says so
    #[arg(long)]
    without_agent: bool,
    /// One repetition and a short probe: a look, which the verdict calls ADD_REPLICATES
    #[arg(long, conflicts_with = "repetitions")]
    quick: bool,
    /// Print the verdict as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the campaign. Exit code 0 when a verdict other than DISCARDED was reached, 1 when DISCARDED.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let stop = StopOnSignal::install()?;
    let options = RunOptions {
        run_dir: args.run_dir.clone(),
        repetitions: args.repetitions.or(args.quick.then_some(QUICK_REPETITIONS)),
        existing: match (args.replace, args.resume) {
            (true, _) => Existing::Replace,
            (_, true) => Existing::Resume,
            _ => Existing::Refuse,
        },
        without_agent: args.without_agent,
        single_pass: args.quick,
        probe_seconds: args.quick.then_some(QUICK_PROBE_SECONDS),
    };
    match analyzer::run::run(&args.campaign, options, stop.flag(), &mut CampaignProgress) {
        Err(error @ RunError::Interrupted { .. }) => {
            eprintln!("goodput: {error}");
            Ok(stop.exit_code().map_or(ExitCode::FAILURE, ExitCode::from))
        }
        judged => judged::print(&judged?, args.json),
    }
}
