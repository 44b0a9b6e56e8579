//! `goodput replay`: one trace, one URL, one rate.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analyzer::clock::SystemClock;
use analyzer::prompt::{Api, BodyOptions, Salt};
use analyzer::replay::{
    BearerToken, Connections, ReplayConfig, RequestLimits, RunIdentity, RunSummary, Target, Tuning,
};
use analyzer::schedule::{Arrivals, Plan, Schedule};
use analyzer::trace::{LoadOptions, Trace};
use anyhow::Context as _;
use clap::ValueEnum;

use super::progress::ReplayBar;
use super::replay_summary;
use super::signals::StopOnSignal;

const NS_PER_MS: u64 = 1_000_000;
const ARM: &str = "replay";

const EXAMPLES: &str = r"Examples:
  goodput replay --url http://10.0.0.10:8000 --trace trace.jsonl --rate 20 --out records/rr20
  goodput replay --url http://10.0.0.10:8000 --trace prompts.jsonl --rate 5 --requests 100 \
    --arrivals poisson --out records/p5 --json

Exit codes: 0 every request has its record, whatever came back; 2 bad input; 128 + signal when interrupted:
what had ended is recorded.";

/// Arguments of `goodput replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Base URL of the gateway's virtual service, for example <http://10.0.0.1:8000>
    #[arg(long)]
    url: String,
    /// Trace to replay: Mooncake JSONL or prompt JSONL
    #[arg(long)]
    trace: PathBuf,
    /// Offered rate, requests per second
    #[arg(long)]
    rate: f64,
    /// Directory for the records; must not hold any yet
    #[arg(long)]
    out: PathBuf,
    /// How arrivals are spread: the trace's own gaps, or a process
    #[arg(long, value_enum, default_value_t = ArrivalsArg::Trace)]
    arrivals: ArrivalsArg,
    /// Loosens trace arrivals by up to so many milliseconds of trace time, seeded
    #[arg(long, default_value_t = 0)]
    jitter_ms: u64,
    /// Seed of arrivals, trace ids and salt
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Repetition: arrivals use seed + repetition, the salt differs
    #[arg(long, default_value_t = 1)]
    repetition: u32,
    /// Requests to send [default: every row]
    #[arg(long)]
    requests: Option<usize>,
    /// Divides input, output and block lengths of a Mooncake trace alike
    #[arg(long, default_value_t = 1)]
    length_divisor: u64,
    /// Deadline of each request from its planned instant, milliseconds
    #[arg(long, default_value_t = 60_000)]
    deadline_ms: u64,
    /// Past the deadline, silence this long counts as stalled, milliseconds
    #[arg(long, default_value_t = 10_000)]
    stall_ms: u64,
    /// Model name in the request bodies; `curl URL/v1/models` lists what the service answers to
    #[arg(long, default_value = "default")]
    model: String,
    /// Bytes of text per token of a Mooncake row
    #[arg(long, default_value_t = 4)]
    bytes_per_token: u64,
    /// Sends Mooncake rows to /v1/completions instead of /v1/chat/completions
    #[arg(long)]
    completions: bool,
    /// Sends `ignore_eos: true`
    #[arg(long)]
    ignore_eos: bool,
    /// Sends `min_tokens` equal to `max_tokens`
    #[arg(long)]
    min_tokens: bool,
    /// File holding the bearer token
    #[arg(long)]
    token_file: Option<PathBuf>,
    /// Whether a connection carries one request or several
    #[arg(long, value_enum, default_value_t = ConnectionsArg::Fresh)]
    connections: ConnectionsArg,
    /// Prints the summary as JSON
    #[arg(long)]
    json: bool,
    /// Deliberate delay before the last request byte, milliseconds
    #[arg(long, hide = true, default_value_t = 0)]
    slow_client_ms: u64,
}

/// Arrival processes by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ArrivalsArg {
    /// The trace's gaps, stretched to the rate
    Trace,
    /// A Poisson process of the offered count
    Poisson,
    /// Equal gaps
    Constant,
}

/// How connections are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ConnectionsArg {
    /// One for every request
    Fresh,
    /// Used again when a response has ended; many gateways then keep the backend
    KeepAlive,
}

impl From<ConnectionsArg> for Connections {
    fn from(arg: ConnectionsArg) -> Self {
        match arg {
            ConnectionsArg::Fresh => Self::Fresh,
            ConnectionsArg::KeepAlive => Self::KeepAlive,
        }
    }
}

/// Everything checked before the first byte is sent or written.
struct Checked {
    target: Target,
    bearer: Option<BearerToken>,
    trace: Trace,
    schedule: Schedule,
    body: BodyOptions,
    salt: Salt,
}

/// Replays the trace and prints a summary.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let checked = check(args)?;
    let stop = StopOnSignal::install()?;
    write_trace(&args.out, &checked.trace)?;
    let summary = replay(args, &checked, &stop)?;
    summary.run.write(&args.out.join("run.json"))?;
    replay_summary::print(&summary, args.json)?;
    Ok(stop.exit_code().map_or(ExitCode::SUCCESS, ExitCode::from))
}

fn check(args: &Args) -> anyhow::Result<Checked> {
    let target = Target::resolve(&args.url)?;
    let bearer = args.token_file.as_deref().map(BearerToken::read).transpose()?;
    let options = LoadOptions { length_divisor: args.length_divisor, ..LoadOptions::default() };
    let trace = analyzer::trace::load(&args.trace, &options)?;
    let (rate_rps, seed, repetition) = (args.rate, args.seed, args.repetition);
    let arrivals = match args.arrivals {
        ArrivalsArg::Trace => Arrivals::Trace { jitter_ms: args.jitter_ms },
        ArrivalsArg::Poisson => Arrivals::Poisson,
        ArrivalsArg::Constant => Arrivals::Constant,
    };
    let requests = args.requests;
    let plan = Plan { rate_rps, arrivals, requests, seed, repetition, arm: ARM };
    let schedule = analyzer::schedule::build(&trace, &plan)?;
    let body = body_options(args)?;
    let salt = Salt::derive(seed, ARM, rate_rps, repetition);
    check_out(&args.out)?;
    target.check()?;
    Ok(Checked { target, bearer, trace, schedule, body, salt })
}

fn body_options(args: &Args) -> anyhow::Result<BodyOptions> {
    anyhow::ensure!(args.bytes_per_token > 0, "--bytes-per-token is 0: give at least 1");
    Ok(BodyOptions {
        model: args.model.clone(),
        bytes_per_token: args.bytes_per_token,
        blocks_api: if args.completions { Api::Completions } else { Api::Chat },
        ignore_eos: args.ignore_eos,
        min_tokens: args.min_tokens,
    })
}

/// A run must not mix with another.
fn check_out(out: &Path) -> anyhow::Result<()> {
    for name in ["trace.jsonl", "schedule.jsonl", "requests.jsonl", "run.json"] {
        let path = out.join(name);
        anyhow::ensure!(!path.exists(), "{} exists: give another --out directory", path.display());
    }
    Ok(())
}

fn write_trace(out: &Path, trace: &Trace) -> anyhow::Result<()> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let path = out.join("trace.jsonl");
    std::fs::write(&path, trace.to_jsonl()?)
        .with_context(|| format!("cannot write {}", path.display()))
}

fn replay(args: &Args, checked: &Checked, stop: &StopOnSignal) -> anyhow::Result<RunSummary> {
    let attempted = checked.schedule.requests().len();
    let mut bar = ReplayBar::new("replay", u64::try_from(attempted)?);
    let config = ReplayConfig {
        identity: RunIdentity { arm: ARM.to_owned(), repetition: args.repetition },
        target: &checked.target,
        bearer: checked.bearer.as_ref(),
        trace: &checked.trace,
        schedule: &checked.schedule,
        body: &checked.body,
        salt: Some(checked.salt),
        connections: args.connections.into(),
        limits: RequestLimits {
            deadline_ns: args.deadline_ms.saturating_mul(NS_PER_MS),
            stall_ns: args.stall_ms.saturating_mul(NS_PER_MS),
        },
        out: &args.out,
        workers: None,
        tuning: Tuning {
            hold_last_byte_ns: args.slow_client_ms.saturating_mul(NS_PER_MS),
            ..Tuning::default()
        },
    };
    let summary = analyzer::replay::run(&config, &SystemClock, stop.flag(), &mut bar);
    bar.clear();
    Ok(summary?)
}
