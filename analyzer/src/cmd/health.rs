//! `goodput health`: phase 0 alone.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::run::check_health;
use analyzer::rundir::to_json;

const EXAMPLES: &str = "Examples:
  goodput health campaign.toml
  goodput health campaign.toml --json | jq '.vips[] | select(.ok | not)'

Exit codes: 0 everything answers, 1 something does not, 2 bad input.";

/// Arguments of `goodput health`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The campaign file
    campaign: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// One streamed completion through every VIP, the model list of every backend. Nothing is written.
/// Exit code 1 when one fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let health = check_health(&args.campaign)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        out.write_all(&to_json(&health)?)?;
    } else {
        for vip in &health.vips {
            let word = if vip.ok { "ok" } else { "FAILED" };
            writeln!(out, "VIP {} ({}): {word} {} {}", vip.vip, vip.arm, vip.class, vip.detail)?;
        }
        for backend in &health.backends {
            let word = if backend.ok { "ok" } else { "FAILED" };
            let models = backend.models.join(", ");
            writeln!(out, "backend {}: {word} {models} {}", backend.address, backend.detail)?;
        }
    }
    Ok(if health.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
