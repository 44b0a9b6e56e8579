//! `goodput audit`: what live traffic tells of a gateway's routing.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use analyzer::audit::{
    AuditReport, Patience, Plan, Salt, Target, analyze, check_new, read, record,
};
use analyzer::rundir::to_json;
use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};

use super::audit_picture;
use super::signals::StopOnSignal;

/// The shortest recording: less is no window.
const SHORTEST: Duration = Duration::from_millis(100);
/// The longest: agents keep a window for a week at most.
const LONGEST: Duration = Duration::from_secs(6 * 24 * 3600);

const EXAMPLES: &str = "Examples:
  goodput audit --agent http://10.0.0.10:9911 --for 60s
  goodput audit --agent http://10.0.0.10:9911 --for 5m --out audits/monday --token-file agent.token
  goodput audit --agent http://gw:9911 --agent http://backend1:9911 --for 60s --json
  goodput audit audits/monday

It sends nothing to the gateway: it judges the traffic that is there (docs/audit.md).
Exit codes: 0 every role was judged, 1 UNKNOWN remains, 2 bad input, 130 after Ctrl-C (what was
recorded is judged and kept).";

/// Arguments of `goodput audit`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Folder that was recorded before
    #[arg(required_unless_present = "agents", conflicts_with = "agents")]
    folder: Option<PathBuf>,
    /// Base URL of an agent to record from; may be given several times
    #[arg(long = "agent", value_name = "URL", requires = "length")]
    agents: Vec<String>,
    /// How long to record: 60s, 5m, 1h
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration, requires = "agents")]
    length: Option<Duration>,
    /// Keep the recording in this new folder
    #[arg(long, value_name = "FOLDER", requires = "agents")]
    out: Option<PathBuf>,
    /// File with the agents' token; once for all, or once for each in order
    #[arg(long = "token-file", value_name = "FILE", requires = "agents")]
    token_files: Vec<PathBuf>,
    /// File with a secret of 32 hexadecimal digits that keys the hashes, so that those of several
    /// audits can be compared [default: a random one, which is forgotten]
    #[arg(long, value_name = "FILE", requires = "agents")]
    salt_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Records where that is asked for, judges and prints.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &args.folder {
        let report = analyze(&read(folder)?);
        print(args, &report)?;
        return Ok(code(&report));
    }
    let targets = targets(args)?;
    let length = args.length.unwrap_or_default();
    anyhow::ensure!(
        (SHORTEST..=LONGEST).contains(&length),
        "--for {}: give between 100ms and 6days",
        humantime::format_duration(length)
    );
    let salt = args.salt_file.as_deref().map_or_else(Salt::random, Salt::read)?;
    let stop = StopOnSignal::install()?;
    let scratch = tempfile::tempdir().context("the temporary folder; give --out FOLDER")?;
    let folder = args.out.as_deref().unwrap_or(scratch.path());
    if args.out.is_some() {
        check_new(folder)?;
    }
    let plan = Plan { targets: &targets, length, salt: &salt, folder };
    let recorded = record_with_bar(&plan, &stop);
    if recorded.is_err() {
        // Only an empty folder is removed.
        let _ = std::fs::remove_dir(folder);
    }
    recorded?;
    let report = analyze(&read(folder)?);
    print(args, &report)?;
    Ok(stop.exit_code().map_or_else(|| code(&report), ExitCode::from))
}

fn targets(args: &Args) -> anyhow::Result<Vec<Target>> {
    let tokens = args.token_files.iter().map(|path| token(path));
    let tokens = tokens.collect::<anyhow::Result<Vec<String>>>()?;
    let each = tokens.len() == args.agents.len();
    anyhow::ensure!(
        each || tokens.len() < 2,
        "{} agents and {} token files: give --token-file once, or once for each --agent",
        args.agents.len(),
        tokens.len()
    );
    let target = |(index, url): (usize, &String)| {
        anyhow::ensure!(
            url.starts_with("http://") || url.starts_with("https://"),
            "--agent {url}: write it as http://10.0.0.10:9911"
        );
        let token = if each { tokens.get(index) } else { tokens.first() };
        Ok(Target { url: url.clone(), token: token.cloned() })
    };
    args.agents.iter().enumerate().map(target).collect()
}

fn token(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("{}: name a readable file", path.display()))?;
    Ok(text.trim().to_owned())
}

struct Bar(ProgressBar);

impl Patience for Bar {
    fn passed(&mut self, elapsed: Duration) {
        self.0.set_position(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
    }
}

fn record_with_bar(plan: &Plan<'_>, stop: &StopOnSignal) -> anyhow::Result<()> {
    let bar = ProgressBar::new(u64::try_from(plan.length.as_millis()).unwrap_or(u64::MAX));
    let template = "recording {bar:30} {elapsed} of {msg}, Ctrl-C ends it early";
    bar.set_style(ProgressStyle::with_template(template)?);
    bar.set_message(humantime::format_duration(plan.length).to_string());
    let mut bar = Bar(bar);
    let recorded = record(plan, stop.flag(), &mut bar);
    bar.0.finish_and_clear();
    Ok(recorded?)
}

fn print(args: &Args, report: &AuditReport) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if args.json {
        out.write_all(&to_json(report)?)?;
    } else {
        write!(out, "{}", audit_picture::draw(report))?;
    }
    Ok(())
}

fn code(report: &AuditReport) -> ExitCode {
    if report.is_judged() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
