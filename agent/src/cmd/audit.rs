//! `goodput-agent audit`.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::signal::unix::{SignalKind, signal};

use super::run::{capture_config, configured, socket_tables};
use crate::audit::{Account, Folder, Rows, State};
use crate::capture::CaptureSource as _;
use crate::capture::tcx::TcxSource;
use crate::clock::Monotonic;
use crate::config::{Config, Settings};
use crate::flow::FlowLimits;
use crate::privileges;
use crate::prompt::Salt;
use crate::sockdiag::SocketTables;
use crate::window::{Closing, Lease, WindowError};
use crate::worker::{self, Command, Ending, Engine, EngineConfig, Handle, Opening, SocketWatch};

/// Milliseconds for which requests in flight are waited for at the end.
const DRAIN_MS: u64 = 2000;
/// The longest recording: a window is kept for a week at most.
const LONGEST: Duration = Duration::from_secs(6 * 24 * 3600);

const EXAMPLES: &str = "Examples:
  goodput-agent audit --config /etc/goodput/agent.toml --for 60s --out audits/monday
  goodput-agent audit --interface eth0 --endpoint vip=10.0.0.1:80 --endpoint backend=10.0.1.1:8000 \
    --endpoint backend=10.0.1.2:8000 --for 5m --out audits/tuesday
  goodput audit audits/monday                            judges what was recorded

It needs no running agent and opens no API: api, token_file and jsonl of the file are not used.
Ctrl-C ends it early, in order. Nothing of a prompt is written but salted hashes (docs/audit.md).";

/// Options of `audit`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct AuditArgs {
    /// New folder to record into
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// How long to record: 60s, 5m, 1h
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    length: Duration,
    /// Configuration file; flags win over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// File with a secret of 32 hexadecimal digits that keys the hashes, so that those of several
    /// audits can be compared [default: a random one, which is forgotten]
    #[arg(long, value_name = "FILE")]
    salt_file: Option<PathBuf>,
    /// Print JSON: a line when it records, and one at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Settings,
}

/// Records until the time is over or a signal comes.
pub(super) fn execute(args: &AuditArgs) -> anyhow::Result<ExitCode> {
    let config = configured(args.config.as_deref(), &args.settings)?;
    let length = humantime::format_duration(args.length);
    let fits = !args.length.is_zero() && args.length <= LONGEST;
    anyhow::ensure!(fits, "--for {length}: give more than 0s and at most 6days");
    let salt = args.salt_file.as_deref().map_or_else(|| Ok(Salt::random()?), read_salt)?;
    Folder::check_new(&args.out)?;
    let source = TcxSource::open(&capture_config(&config, false))?;
    let tables = socket_tables(&config)?.map(|it| Box::new(it) as Box<dyn SocketTables>);
    let watch = SocketWatch::new(tables, config.idle_expiry_s * 1_000_000_000);
    let folder = Folder::begin(&args.out, account(args, &config, &source)?)?;
    let live = BufWriter::new(folder.live()?);
    let views = source.interfaces()?;
    privileges::drop_all().context("dropping capabilities")?;
    let request_bytes = config.request_budget_bytes;
    let engine = EngineConfig {
        endpoints: config.endpoints,
        interfaces: views.into_iter().map(|view| (view.ifindex, view.name)).collect(),
        interval_ns: config.interval_ms * 1_000_000,
        limits: FlowLimits::default(),
        jsonl: Some(Box::new(live)),
        clock: Arc::new(Monotonic),
    };
    let engine = Engine::new(Box::new(source), engine).watching(watch).copying(request_bytes);
    let (handle, thread) = worker::start(engine)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (state, closing) = runtime.block_on(record(&handle, salt, args, &folder))?;
    thread.join().map_err(|_| anyhow::anyhow!("the flow thread ended by a defect"))?;
    print(args, state, &closing)?;
    Ok(ExitCode::SUCCESS)
}

fn read_salt(path: &Path) -> anyhow::Result<Salt> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("{}: name a readable file", path.display()))?;
    let salt = text.trim().parse::<Salt>();
    salt.with_context(|| format!("{}: write one with `openssl rand -hex 16`", path.display()))
}

fn account(args: &AuditArgs, config: &Config, source: &TcxSource) -> anyhow::Result<Account> {
    let kernel = nix::sys::utsname::uname()?;
    Ok(Account {
        name: config.name.clone(),
        kernel: kernel.release().to_string_lossy().into_owned(),
        source: source.name(),
        endpoints: config.endpoints.clone(),
        asked_ns: u64::try_from(args.length.as_nanos())?,
    })
}

async fn ask<T>(
    handle: &Handle,
    command: impl FnOnce(tokio::sync::oneshot::Sender<Result<T, WindowError>>) -> Command,
) -> anyhow::Result<T> {
    let answer = handle.ask(command).await.context("the worker has stopped; see the log")?;
    Ok(answer?)
}

async fn record(
    handle: &Handle,
    salt: Salt,
    args: &AuditArgs,
    folder: &Folder,
) -> anyhow::Result<(State, Closing)> {
    // Before the window: whoever sees it may send a signal at once.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let opening =
        Opening { lease: Lease::LONGEST, prefix_salt: Some(salt), ..Opening::new("audit") };
    let id = ask(handle, |reply| Command::Open(opening, reply)).await?.window_id;
    say_recording(args)?;
    let bar = bar(args.length)?;
    let state = tokio::select! {
        () = tokio::time::sleep(args.length) => State::Complete,
        _ = terminate.recv() => State::Interrupted,
        _ = interrupt.recv() => State::Interrupted,
    };
    bar.finish_and_clear();
    let ending = Ending::new(&id, DRAIN_MS);
    let closing = ask(handle, |reply| Command::Close(ending, reply)).await?;
    let rows = rows(handle, &id).await?;
    handle.ask(Command::Stop).await;
    folder.finish(state, &closing, &rows)?;
    Ok((state, closing))
}

async fn rows(handle: &Handle, id: &str) -> anyhow::Result<Rows> {
    let id = || id.to_owned();
    Ok(Rows {
        observations: ask(handle, |reply| Command::Observations(id(), reply)).await?,
        inflight: ask(handle, |reply| Command::Inflight(id(), reply)).await?,
        prefixes: ask(handle, |reply| Command::Prefixes(id(), reply)).await?,
        concentration: ask(handle, |reply| Command::Concentration(id(), reply)).await?,
    })
}

/// Whoever starts it from a program waits for this line.
fn say_recording(args: &AuditArgs) -> std::io::Result<()> {
    if args.json {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", serde_json::json!({ "recording": true, "folder": args.out }))?;
        out.flush()?;
    }
    Ok(())
}

fn bar(length: Duration) -> anyhow::Result<ProgressBar> {
    let bar = ProgressBar::new_spinner();
    let template = "{spinner} recording {elapsed} of {msg}, Ctrl-C ends it early";
    bar.set_style(ProgressStyle::with_template(template)?);
    bar.set_message(humantime::format_duration(length).to_string());
    bar.enable_steady_tick(Duration::from_millis(250));
    Ok(bar)
}

fn print(args: &AuditArgs, state: State, closing: &Closing) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if args.json {
        let said = serde_json::json!({
            "schema": "goodput.audit-recorded/1",
            "folder": args.out,
            "state": state,
            "complete": closing.complete,
            "reasons": closing.reasons,
            "observations": closing.observations,
            "open_requests": closing.open_requests,
        });
        writeln!(out, "{said}")?;
        return Ok(());
    }
    let reasons: Vec<&str> = closing.reasons.iter().map(|reason| reason.code()).collect();
    let complete = if closing.complete { "complete".to_owned() } else { reasons.join(", ") };
    writeln!(out, "{} requests recorded, {complete}", closing.observations)?;
    writeln!(out, "judge them with: goodput audit {}", args.out.display())?;
    Ok(())
}
