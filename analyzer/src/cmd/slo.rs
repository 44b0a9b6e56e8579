//! `goodput slo derive`: the SLO as a multiple of the unloaded baseline, with its origin.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analyzer::run::{DeriveOptions, Derived, RunError, derive_slo};
use analyzer::rundir::to_json;

use super::campaign_progress::CampaignProgress;
use super::signals::StopOnSignal;

const EXAMPLES: &str = "Examples:
  goodput slo derive campaign.toml --out slo.json
  goodput slo derive campaign.toml --ttft-multiple 5 --tpot-multiple 3 --requests 200 --out slo.json

It sends the trace's prompts through the floor arm's VIP, one at a time, each with a salt of its own, and
prints the line for [slo] of the campaign. The records lie beside FILE, slo.json as slo.requests.jsonl.
Exit codes: 0 derived, 2 bad input or a baseline that misses its own SLO, 130 and 143 after a signal.";

/// Arguments of `goodput slo`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Measure the unloaded baseline through the floor arm and write the SLO with its origin
    Derive(Derive),
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
struct Derive {
    /// The campaign file: trace, request and floor arm are as there
    campaign: PathBuf,
    /// File to write; it must not exist
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// SLO / baseline of TTFT [default: the campaign's multiple_of_baseline]
    #[arg(long, value_name = "N")]
    ttft_multiple: Option<f64>,
    /// SLO / baseline of TPOT [default: the campaign's multiple_of_baseline]
    #[arg(long, value_name = "N")]
    tpot_multiple: Option<f64>,
    /// Requests, sent one at a time; at least 100 [default: the campaign's, or 100]
    #[arg(long, value_name = "N")]
    requests: Option<u64>,
    /// Requests sent before them and left out
    #[arg(long, value_name = "N", default_value_t = 5)]
    warmup: u64,
    /// Print the file
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Command::Derive(args) = &args.command;
    let stop = StopOnSignal::install()?;
    let options = DeriveOptions {
        ttft_multiple: args.ttft_multiple,
        tpot_multiple: args.tpot_multiple,
        requests: args.requests,
        warmup: args.warmup,
        out: args.out.clone(),
    };
    let derived = match derive_slo(&args.campaign, &options, stop.flag(), &mut CampaignProgress) {
        Err(RunError::Interrupted { .. }) => {
            eprintln!("goodput: stopped by a signal; nothing is kept, run it again");
            return Ok(stop.exit_code().map_or(ExitCode::FAILURE, ExitCode::from));
        }
        derived => derived?,
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        out.write_all(&to_json(&derived.slo)?)?;
    } else {
        out.write_all(summary(&derived, &args.out).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn summary(derived: &Derived, out: &Path) -> String {
    let (slo, origin) = (&derived.slo, &derived.slo.origin);
    let ms = |ns: u64| ns as f64 / 1e6;
    format!(
        "baseline of {} requests through {} ({}): TTFT {:.1} ms, TPOT {:.3} ms ({})\n\
         SLO: TTFT <= {:.1} ms ({} x), TPOT <= {:.3} ms ({} x); {:.1} % of the unloaded requests exceed the TTFT SLO\n\
         written to {}; in [slo] of the campaign, instead of multiple_of_baseline or fixed:\n  \
         derived = {{ file = {:?}, sha256 = {:?} }}\n",
        origin.requests,
        origin.arm,
        origin.vip,
        ms(origin.baseline_ttft_ns),
        ms(origin.baseline_tpot_ns),
        origin.quantile,
        ms(slo.ttft_ns),
        origin.ttft_multiple,
        ms(slo.tpot_ns),
        origin.tpot_multiple,
        origin.unloaded_share_over_slo * 100.0,
        out.display(),
        out.display().to_string(),
        derived.sha256,
    )
}
