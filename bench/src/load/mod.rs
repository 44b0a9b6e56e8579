//! Raw traffic: one thread serves streams at a fixed rate, one reads them, both over epoll.
//!
//! Every length is fixed, so that the reader knows an answer's end by counting and checks that every
//! byte came, and neither thread parses.

mod client;
mod script;
mod server;

use std::io::{BufRead as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

pub(crate) use script::Script;

/// What is sent.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Plan {
    /// Connections, each with one request at a time.
    #[arg(long)]
    pub(crate) connections: u64,
    /// Token events per second, of all connections together.
    #[arg(long)]
    pub(crate) events_per_second: u64,
    /// Length of the schedule, in seconds.
    #[arg(long)]
    pub(crate) seconds: u64,
    /// Bytes that an event puts on the wire, its chunk's framing included.
    #[arg(long)]
    pub(crate) event_bytes: usize,
    /// Token events in one answer.
    #[arg(long)]
    pub(crate) events_per_request: u64,
    /// Open a new connection for each request.
    #[arg(long)]
    pub(crate) churn: bool,
}

impl Plan {
    /// Requests on each connection.
    pub(crate) fn requests_per_connection(&self) -> u64 {
        let events = self.events_per_second * self.seconds;
        (events / (self.connections * self.events_per_request)).max(1)
    }

    /// Nanoseconds between two events of a stream.
    pub(crate) fn interval_ns(&self) -> u64 {
        1_000_000_000 * self.connections / self.events_per_second
    }

    /// As arguments of `goodput-bench load`.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["load".to_owned()];
        let numbers = [
            ("--connections", self.connections),
            ("--events-per-second", self.events_per_second),
            ("--seconds", self.seconds),
            ("--event-bytes", self.event_bytes as u64),
            ("--events-per-request", self.events_per_request),
        ];
        arguments.extend(numbers.iter().flat_map(|(key, it)| [(*key).to_owned(), it.to_string()]));
        arguments.extend(self.churn.then(|| "--churn".to_owned()));
        arguments
    }
}

/// Where the streams are served.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ready {
    pub(crate) endpoints: Vec<SocketAddr>,
}

/// What was sent and read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Requests answered to the last byte.
    pub(crate) requests: u64,
    /// Token events written by the server.
    pub(crate) events_written: u64,
    /// Token events read whole by the client.
    pub(crate) events_read: u64,
    /// Bytes read.
    pub(crate) bytes_read: u64,
    /// Length of the run, in nanoseconds.
    pub(crate) elapsed_ns: u64,
    /// From the write of the request to the read of its first event, in nanoseconds.
    pub(crate) ttft_p50_ns: u64,
    /// The 99th percentile of the same.
    pub(crate) ttft_p99_ns: u64,
}

/// Addresses that connections are spread over: one has room for about 28,000 local ports.
const ADDRESSES: u8 = 4;

/// What both threads share.
pub(crate) struct Shared {
    pub(crate) events_written: AtomicU64,
    pub(crate) client_done: AtomicBool,
}

/// Serves, says where, waits for a line on standard input, and runs the schedule.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    raise_open_files(plan)?;
    let listeners = (1..=ADDRESSES)
        .map(|host| TcpListener::bind((Ipv4Addr::new(127, 0, 0, host), 0)))
        .collect::<Result<Vec<_>, _>>()
        .context("loopback addresses can't be bound; mend: ip link set lo up")?;
    let endpoints = listeners.iter().map(TcpListener::local_addr).collect::<Result<Vec<_>, _>>()?;
    say(&Ready { endpoints: endpoints.clone() })?;
    std::io::stdin().lock().read_line(&mut String::new())?;
    let script = Script::new(plan.event_bytes, plan.events_per_request);
    let shared = Shared { events_written: AtomicU64::new(0), client_done: AtomicBool::new(false) };
    let outcome = std::thread::scope(|scope| {
        let server = scope.spawn(|| server::run(listeners, plan, &script, &shared));
        let outcome = client::run(&endpoints, plan, &script);
        shared.client_done.store(true, std::sync::atomic::Ordering::SeqCst);
        server.join().map_err(|_| anyhow::anyhow!("the server's thread ended by a defect"))??;
        outcome
    })?;
    // Both have ended: nothing is being written any more.
    let events_written = shared.events_written.into_inner();
    say(&Outcome { events_written, ..outcome })
}

/// Both ends of every connection are open files of this process.
fn raise_open_files(plan: &Plan) -> anyhow::Result<()> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let needed = plan.connections * 2 + 64;
    anyhow::ensure!(
        hard >= needed,
        "{needed} open files are needed and {hard} allowed; mend: ulimit -Hn {needed}, as root"
    );
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}

fn say(what: &impl Serialize) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(what)?)?;
    Ok(out.flush()?)
}
