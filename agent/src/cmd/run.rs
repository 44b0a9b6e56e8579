//! `goodput-agent run`.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

use crate::api::{self, About, InterfaceName, Sockdiag, Token};
use crate::capture::CaptureSource as _;
use crate::capture::tcx::{InterfaceRef, Missing, TcxConfig, TcxSource};
use crate::clock::{Clock as _, Monotonic};
use crate::config::{Config, Settings};
use crate::flow::FlowLimits;
use crate::privileges;
use crate::sockdiag::{DiagError, NetlinkTables, SocketTables};
use crate::worker::{self, Command, Engine, EngineConfig, Handle, SocketWatch};

const EXAMPLES: &str = "Examples:
  goodput-agent run --interface lo --endpoint vip=127.0.0.1:8000 --endpoint backend=127.0.0.1:8100
  goodput-agent run --config /etc/goodput/agent.toml --jsonl observations.jsonl
  goodput-agent run --interface eth0 --endpoint backend=10.0.1.1:8000 --api 0.0.0.0:9911 \
    --token-file agent.token

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
}

/// Watches until it is told to stop.
pub(super) fn execute(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let prepared = prepare(args)?;
    let about = about(&prepared)?;
    privileges::drop_all().context("dropping capabilities")?;
    let Prepared { config, listener, token, jsonl, source, tables } = prepared;
    let tables = tables.map(|it| Box::new(it) as Box<dyn SocketTables>);
    let watch = SocketWatch::new(tables, config.idle_expiry_s * 1_000_000_000);
    let interfaces = about.interfaces.iter().map(|it| (it.index, it.name.clone()));
    let engine = EngineConfig {
        endpoints: config.endpoints,
        interfaces: interfaces.collect::<BTreeMap<_, _>>(),
        interval_ns: config.interval_ms * 1_000_000,
        limits: FlowLimits::default(),
        jsonl,
        clock: Arc::new(Monotonic),
    };
    let (handle, thread) = worker::start(Engine::new(Box::new(source), engine).watching(watch))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(listener, handle, about, token))?;
    thread.join().map_err(|_| anyhow::anyhow!("the flow thread ended by a defect"))?;
    Ok(ExitCode::SUCCESS)
}

/// The API comes first: when its port is taken, nothing was attached.
fn prepare(args: &RunArgs) -> anyhow::Result<Prepared> {
    let file = args.config.as_deref().map(Settings::read).transpose()?.unwrap_or_default();
    let host = nix::sys::utsname::uname()?;
    let host = host.nodename().to_string_lossy().into_owned();
    let config = args.settings.clone().over(file).complete(&host)?;
    let listener = TcpListener::bind(config.api).with_context(|| {
        format!("api: can't listen on {}; choose another address with --api", config.api)
    })?;
    let token = config.token_file.as_deref().map(|path| {
        Token::read(path).with_context(|| {
            format!("{}: write the token into a file that the agent may read", path.display())
        })
    });
    let token = token.transpose()?;
    let jsonl = config.jsonl.as_deref().map(|path| {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        file.with_context(|| format!("{}: choose a writable file with --jsonl", path.display()))
    });
    let jsonl = jsonl.transpose()?;
    let jsonl = jsonl.map(|file| Box::new(BufWriter::new(file)) as Box<dyn Write + Send>);
    let source = TcxSource::open(&capture_config(&config, args.kernel_log))?;
    if let Err(reason) = source.retransmits_watched() {
        tracing::warn!(reason, "the kernel does not tell of retransmissions");
    }
    let tables = socket_tables(&config)?;
    Ok(Prepared { config, listener, token, jsonl, source, tables })
}

/// Without inet_diag the agent watches all the same. A thread that could not come back from another
/// network namespace must not go on.
fn socket_tables(config: &Config) -> anyhow::Result<Option<NetlinkTables>> {
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

fn capture_config(config: &Config, kernel_log: bool) -> TcxConfig {
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
        endpoints: prepared.config.endpoints.clone(),
        sockdiag: sockdiag(prepared),
    })
}

async fn serve(
    listener: TcpListener,
    handle: Handle,
    about: About,
    token: Option<Token>,
) -> anyhow::Result<()> {
    // Before "ready": whoever reads that line may send a signal at once.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let address = listener.local_addr()?;
    if token.is_none() && !address.ip().is_loopback() {
        tracing::warn!("the API is open to the network: protect it with --token-file");
    }
    tracing::info!(api = %address, source = about.source, "watching");
    say_ready(address, &about)?;
    let router = api::router(handle.clone(), about, token);
    tokio::select! {
        served = async { axum::serve(listener, router).await } => served?,
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping");
    handle.ask(Command::Stop).await;
    Ok(())
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
