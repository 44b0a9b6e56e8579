//! `goodput-agent doctor`.

use std::io::Write as _;
use std::process::ExitCode;

use crate::capture::tcx::preflight;
use crate::sockdiag;

/// Options of `doctor`.
#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints what is missing; exit code 2 when something is.
pub(super) fn execute(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let missing = preflight();
    let limits = sockdiag::preflight();
    let mut out = std::io::stdout().lock();
    if args.json {
        let report = serde_json::json!({
            "schema": "goodput.doctor/1",
            "source": "tcx",
            "ready": missing.is_empty(),
            "missing": missing,
            "limits": limits,
        });
        writeln!(out, "{report}")?;
    } else if missing.is_empty() {
        writeln!(out, "tcx: ready; nothing is missing on this host")?;
    } else {
        for one in &missing {
            writeln!(out, "missing: {}\n   mend: {}", one.what, one.mend)?;
        }
    }
    if !args.json {
        for one in &limits {
            writeln!(out, "limit: {}\n   mend: {}", one.what, one.mend)?;
        }
    }
    Ok(if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(super::EXIT_USAGE) })
}
