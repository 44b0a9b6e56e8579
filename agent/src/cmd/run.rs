//! `goodput-agent run`.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};

use crate::api::{self, About, Access, ApiLimits, InterfaceName, Sockdiag, Token};
use crate::capture::CaptureSource as _;
use crate::capture::tcx::{InterfaceRef, Missing, TcxConfig, TcxSource};
use crate::clock::{Clock as _, Monotonic};
use crate::config::{Config, Settings};
use crate::discovery::{self, DiscoveryError, DiscoveryStatus, Found};
use crate::endpoint::Endpoint;
use crate::evidence::{Collector, Subject};
use crate::flow::FlowLimits;
use crate::sockdiag::{DiagError, NetlinkTables, SocketTables};
use crate::worker::{self, Change, Command, Engine, EngineConfig, Handle, SocketWatch};
use crate::{notify, privileges, reload};

const EXAMPLES: &str = "Examples:
  goodput-agent run --interface lo --endpoint vip=127.0.0.1:8000 --endpoint backend=127.0.0.1:8100
  goodput-agent run --config /etc/goodput/agent.toml --jsonl observations.jsonl
  goodput-agent run --interface eth0 --discover http://127.0.0.1:11111
  goodput-agent run --interface eth0 --endpoint backend=10.0.1.1:8000 --api 0.0.0.0:9911 \
    --token-file agent.token

SIGHUP reads the file and the token again and opens the JSONL file anew (docs/agent.md).
When it watches, it prints one JSON line: {\"ready\":true,\"api\":\"127.0.0.1:9911\",...}";

/// Options of `run`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RunArgs {
    /// Configuration file; flags win over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// Forward the kernel programs' own log
    #[arg(long)]
    kernel_log: bool,
}

/// Everything that needs a privilege or a name, held before anything is started.
struct Prepared {
    config: Config,
    listener: TcpListener,
    token: Option<Token>,
    jsonl: Option<Box<dyn Write + Send>>,
    source: TcxSource,
    tables: Option<NetlinkTables>,
    /// Endpoints that the configuration names, without those that were found.
    named: Vec<Endpoint>,
    found: Option<Discovery>,
}

/// What was read of LoxiLB's rules.
struct Discovery {
    endpoints: Vec<Endpoint>,
    status: Arc<DiscoveryStatus>,
}

/// Watches until it is told to stop.
pub(super) fn execute(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let prepared = prepare(args)?;
    let about = about(&prepared)?;
    privileges::drop_all().context("dropping capabilities")?;
    let Prepared { config, listener, token, jsonl, source, tables, named, found } = prepared;
    let tables = tables.map(|it| Box::new(it) as Box<dyn SocketTables>);
    let watch = SocketWatch::new(tables, config.idle_expiry_s * 1_000_000_000);
    let mut reloader = Reloader {
        file: args.config.clone(),
        flags: args.settings.clone(),
        config: config.clone(),
        named,
        found,
        access: Arc::new(Access::new(token)),
    };
    let interfaces = about.interfaces.iter().map(|it| (it.index, it.name.clone()));
    let request_bytes = config.request_budget_bytes;
    let engine = EngineConfig {
        endpoints: config.endpoints,
        interfaces: interfaces.collect::<BTreeMap<_, _>>(),
        interval_ns: config.interval_ms * 1_000_000,
        limits: FlowLimits::default(),
        jsonl,
        clock: Arc::new(Monotonic),
    };
    let engine = Engine::new(Box::new(source), engine).watching(watch).copying(request_bytes);
    let (handle, thread) = worker::start(engine)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(listener, handle, about, &mut reloader))?;
    thread.join().map_err(|_| anyhow::anyhow!("the flow thread ended by a defect"))?;
    Ok(ExitCode::SUCCESS)
}

/// The API comes first: when its port is taken, nothing was attached.
fn prepare(args: &RunArgs) -> anyhow::Result<Prepared> {
    let mut config = configured(args.config.as_deref(), &args.settings)?;
    let listener = TcpListener::bind(config.api).with_context(|| {
        format!("api: can't listen on {}; choose another address with --api", config.api)
    })?;
    let token = read_token(&config)?;
    let jsonl = open_jsonl(&config)?;
    let named = config.endpoints.clone();
    let found = config.discovery.as_ref().map(first_reading);
    if let Some(found) = &found {
        config.endpoints = discovery::merged(&named, &found.endpoints);
    }
    let source = TcxSource::open(&capture_config(&config, args.kernel_log))?;
    if let Err(reason) = source.retransmits_watched() {
        tracing::warn!(reason, "the kernel does not tell of retransmissions");
    }
    let tables = socket_tables(&config)?;
    Ok(Prepared { config, listener, token, jsonl, source, tables, named, found })
}

/// LoxiLB may start after the agent: then its rules are found later.
fn first_reading(plan: &discovery::Plan) -> Discovery {
    let status = Arc::new(DiscoveryStatus::new(&plan.target, plan.interval));
    let endpoints = match discovery::read(&plan.target) {
        Ok(found) => {
            status.good(Monotonic.now(), &found, true);
            found.endpoints
        }
        Err(error) => {
            status.failed(&error.to_string());
            tracing::warn!(%error, "no endpoints were discovered yet");
            Vec::new()
        }
    };
    Discovery { endpoints, status }
}

pub(super) fn configured(file: Option<&Path>, flags: &Settings) -> anyhow::Result<Config> {
    let file = file.map(Settings::read).transpose()?.unwrap_or_default();
    let host = nix::sys::utsname::uname()?;
    let host = host.nodename().to_string_lossy().into_owned();
    Ok(flags.clone().over(file).complete(&host)?)
}

fn read_token(config: &Config) -> anyhow::Result<Option<Token>> {
    let read = |path: &Path| {
        Token::read(path).with_context(|| {
            format!("{}: write the token into a file that the agent may read", path.display())
        })
    };
    config.token_file.as_deref().map(read).transpose()
}

fn open_jsonl(config: &Config) -> anyhow::Result<Option<Box<dyn Write + Send>>> {
    let open = |path: &Path| {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        file.with_context(|| format!("{}: choose a writable file with --jsonl", path.display()))
    };
    let file = config.jsonl.as_deref().map(open).transpose()?;
    Ok(file.map(|file| Box::new(BufWriter::new(file)) as Box<dyn Write + Send>))
}

/// What a reload goes by, and what it changes beside the worker.
struct Reloader {
    file: Option<PathBuf>,
    flags: Settings,
    config: Config,
    named: Vec<Endpoint>,
    found: Option<Discovery>,
    access: Arc<Access>,
}

impl Reloader {
    /// Follows the files as they are now; on any error everything stays as it was.
    async fn reload(&mut self, worker: &Handle) {
        let applied = self.apply(worker).await;
        self.access.count_reload(applied.is_ok());
        match applied {
            Ok(()) => tracing::info!("the configuration was read again"),
            Err(error) => {
                tracing::error!(
                    error = format!("{error:#}"),
                    "the configuration was not applied: the old one stays in force"
                );
            }
        }
    }

    async fn apply(&mut self, worker: &Handle) -> anyhow::Result<()> {
        let mut new = configured(self.file.as_deref(), &self.flags)?;
        let named = std::mem::take(&mut new.endpoints);
        new.endpoints = self.with_found(&named);
        let token = read_token(&new)?;
        let jsonl = open_jsonl(&new)?;
        let plan = reload::plan(&self.config, &new);
        anyhow::ensure!(
            token.is_some() || self.config.api.ip().to_canonical().is_loopback(),
            "the API on {} would be open to the network; keep token_file",
            self.config.api
        );
        let change =
            Change { endpoints: plan.endpoints, interval_ns: plan.interval_ns, jsonl: Some(jsonl) };
        let answer = worker.ask(|reply| Command::Reconfigure(change, reply)).await;
        answer.context("the worker has stopped; restart the agent")??;
        self.access.set_token(token);
        for key in plan.restart {
            tracing::warn!(key, "this key was changed: it needs a restart, its old value stays");
        }
        self.config = reload::in_force(&self.config, new);
        self.named = named;
        Ok(())
    }

    fn with_found(&self, named: &[Endpoint]) -> Vec<Endpoint> {
        let found = self.found.as_ref().map_or(&[][..], |it| &it.endpoints);
        discovery::merged(named, found)
    }

    /// Follows a reading of LoxiLB's rules; on any error everything stays as it was.
    async fn discovered(&mut self, worker: &Handle, reading: Result<Found, DiscoveryError>) {
        let applied = match reading {
            Ok(found) => self.follow(worker, found).await,
            Err(error) => Err(error.into()),
        };
        let Some(discovery) = &self.found else { return };
        if let Err(error) = applied {
            let error = format!("{error:#}");
            if discovery.status.failed(&error) {
                tracing::warn!(error, "endpoints were not discovered: the old ones stay in force");
            }
        }
    }

    async fn follow(&mut self, worker: &Handle, found: Found) -> anyhow::Result<()> {
        let endpoints = discovery::merged(&self.named, &found.endpoints);
        let changed = endpoints != self.config.endpoints;
        if changed {
            let change = Change { endpoints: Some(endpoints.clone()), ..Change::default() };
            let answer = worker.ask(|reply| Command::Reconfigure(change, reply)).await;
            answer.context("the worker has stopped; restart the agent")??;
            tracing::info!(endpoints = endpoints.len(), "LoxiLB's rules changed: endpoints follow");
            self.config.endpoints = endpoints;
        }
        if let Some(discovery) = &mut self.found {
            discovery.status.good(Monotonic.now(), &found, changed);
            discovery.endpoints = found.endpoints;
        }
        Ok(())
    }
}

/// Without inet_diag the agent watches all the same. A thread that could not come back from another
/// network namespace must not go on.
pub(super) fn socket_tables(config: &Config) -> anyhow::Result<Option<NetlinkTables>> {
    let endpoints: Vec<_> = config.endpoints.iter().map(|endpoint| endpoint.address).collect();
    match NetlinkTables::open(&endpoints) {
        Ok(tables) => {
            for one in tables.missing() {
                tracing::warn!(missing = one.what, mend = one.mend, "not every socket is listed");
            }
            Ok(Some(tables))
        }
        Err(error @ DiagError::Stranded { .. }) => Err(error.into()),
        Err(error) => {
            tracing::warn!(%error, "connections are not reconciled, and older ones are unknown");
            Ok(None)
        }
    }
}

fn sockdiag(prepared: &Prepared) -> Sockdiag {
    let unusable = || Missing {
        what: "inet_diag: connections are not reconciled, and older ones are unknown".to_owned(),
        mend: "modprobe tcp_diag (CONFIG_INET_TCP_DIAG); the log has the kernel's reason"
            .to_owned(),
    };
    match &prepared.tables {
        Some(tables) => Sockdiag {
            namespaces: tables.namespaces().to_vec(),
            missing: tables.missing().to_vec(),
        },
        None => Sockdiag { namespaces: Vec::new(), missing: vec![unusable()] },
    }
}

pub(super) fn capture_config(config: &Config, kernel_log: bool) -> TcxConfig {
    let interface = |name: &String| match name.parse::<InterfaceRef>() {
        Ok(reference) => reference,
        Err(never) => match never {},
    };
    let interfaces = config.interfaces.iter().map(interface).collect();
    let endpoints = config.endpoints.iter().map(|endpoint| endpoint.address).collect();
    TcxConfig {
        ring_bytes: config.ring_bytes,
        request_budget: config.request_budget_bytes,
        kernel_log,
        method: config.source.method(),
        ..TcxConfig::new(interfaces, endpoints)
    }
}

fn about(prepared: &Prepared) -> anyhow::Result<About> {
    let views = prepared.source.interfaces()?;
    let kernel = nix::sys::utsname::uname()?;
    Ok(About {
        name: prepared.config.name.clone(),
        kernel: kernel.release().to_string_lossy().into_owned(),
        source: prepared.source.name(),
        started: Monotonic.now(),
        interfaces: views
            .into_iter()
            .map(|view| InterfaceName { name: view.name, index: view.ifindex })
            .collect(),
        started_unix_s: std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0.0, |since| since.as_secs_f64()),
        ring_bytes: u64::from(prepared.config.ring_bytes),
        sockdiag: sockdiag(prepared),
        evidence: Arc::new(Collector::new(subject(prepared)?, Arc::new(Monotonic))),
        discovery: prepared.found.as_ref().map(|it| Arc::clone(&it.status)),
    })
}

fn subject(prepared: &Prepared) -> anyhow::Result<Subject> {
    let views = prepared.source.interfaces()?;
    let interfaces = views.into_iter().map(|view| (view.name, view.ifindex)).collect();
    Ok(Subject { process: prepared.config.loxilb_process.clone(), interfaces })
}

async fn serve(
    listener: TcpListener,
    handle: Handle,
    about: About,
    reloader: &mut Reloader,
) -> anyhow::Result<()> {
    // Before "ready": whoever reads that line may send a signal at once.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let address = listener.local_addr()?;
    tracing::info!(api = %address, source = about.source, "watching");
    say_ready(address, &about)?;
    let limits = ApiLimits::default();
    let access = Arc::clone(&reloader.access);
    let router = api::router(handle.clone(), about, Arc::clone(&access), limits);
    let api = tokio::spawn(api::serve(listener, router, access, limits));
    if let Some(period) = notify::watchdog() {
        let feed = || notify::tell(&[NotifyState::Watchdog]);
        tokio::spawn(notify::guard(handle.clone(), period, feed));
    }
    notify::tell(&[NotifyState::Ready]);
    let mut readings = reloader.config.discovery.clone().map(discovery::poll).transpose()?;
    loop {
        tokio::select! {
            Some(reading) = next(&mut readings) => reloader.discovered(&handle, reading).await,
            _ = hangup.recv() => {
                notify::reloading();
                reloader.reload(&handle).await;
                notify::tell(&[NotifyState::Ready]);
            }
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    tracing::info!("stopping");
    notify::tell(&[NotifyState::Stopping]);
    api.abort();
    handle.ask(Command::Stop).await;
    Ok(())
}

/// The next reading of LoxiLB's rules; never where endpoints are not discovered.
async fn next(
    readings: &mut Option<tokio::sync::mpsc::Receiver<Result<Found, DiscoveryError>>>,
) -> Option<Result<Found, DiscoveryError>> {
    match readings {
        Some(readings) => readings.recv().await,
        None => std::future::pending().await,
    }
}

fn say_ready(address: std::net::SocketAddr, about: &About) -> std::io::Result<()> {
    let interfaces: Vec<_> = about.interfaces.iter().map(|it| &it.name).collect();
    let ready = serde_json::json!({
        "ready": true,
        "api": address.to_string(),
        "source": about.source,
        "interfaces": interfaces,
    });
    let mut out = std::io::stdout().lock();
    writeln!(out, "{ready}")?;
    out.flush()
}
