//! `goodput replay`: one trace, one URL, one rate.

use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `goodput replay`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Base URL of the gateway's virtual service, for example http://10.0.0.1:8000
    #[arg(long)]
    url: String,
    /// Trace to replay: Mooncake JSONL or prompt JSONL
    #[arg(long)]
    trace: PathBuf,
}

/// Replays the trace and prints a summary.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("replay of {} against {} is not built yet", args.trace.display(), args.url)
}
