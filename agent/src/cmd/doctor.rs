//! `goodput-agent doctor`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::config::Settings;
use crate::doctor::{Report, Request, State, Vip, examine, gather};
use crate::logging::printable;

const EXAMPLES: &str = "Examples:
  sudo goodput-agent doctor
  sudo goodput-agent doctor --config /etc/goodput/agent.toml
  sudo goodput-agent doctor --interface eth0 --interface lo --vip 10.0.0.10:8000 \
    --endpoint backend=10.0.1.1:8000
  goodput-agent doctor --json | jq '.rows[] | select(.state != \"ok\")'

Exit codes: 0 nothing is to be mended, 1 the agent would run and something is limited or unknown, 2 it \
would not run or see nothing. It changes nothing; --vip sends one GET /v1/models to the service.";

/// Options of `doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DoctorArgs {
    /// Configuration file to look at; flags win over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// Virtual service whose traffic should be visible: sends one request to it and watches
    #[arg(long, value_name = "ADDRESS:PORT|URL")]
    vip: Option<Vip>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints a row for everything that was looked at.
pub(super) fn execute(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let request =
        Request { file: args.config.clone(), flags: args.settings.clone(), vip: args.vip };
    let report = examine(&gather(&request));
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    } else {
        print_table(&mut out, &report)?;
    }
    Ok(match report.worst() {
        State::Ok => ExitCode::SUCCESS,
        State::Unknown | State::Warn => ExitCode::FAILURE,
        State::Fail => ExitCode::from(super::EXIT_USAGE),
    })
}

fn print_table(out: &mut impl Write, report: &Report) -> std::io::Result<()> {
    let mut before = None;
    for row in &report.rows {
        let (check, found) = (printable(&row.check), printable(&row.found));
        writeln!(out, "{:>7}  {check:<30}  {found}", row.state.name())?;
        if let Some(mend) = &row.mend {
            // Capabilities are given together.
            let mend = if before == Some(mend) { "as above" } else { mend };
            writeln!(out, "{:>7}  {:<30}  mend: {}", "", "", printable(mend))?;
        }
        before = row.mend.as_ref();
    }
    let count = |state| format!("{} {}", report.count(state), state.name());
    let counts = [State::Ok, State::Warn, State::Unknown, State::Fail].map(count).join(", ");
    let verdict = if report.is_ready() { "the agent would run here" } else { "not ready" };
    writeln!(out, "{verdict}: {counts}")
}
