//! Proof on the spot: makes traffic of its own on loopback, watches it with the agent's real source,
//! and compares every observation with what was sent.
//!
//! Server, client and agent run in this process and share one clock, so that kernel stamps can be held
//! against the instants at which the bytes were written and read.

mod check;
mod client;
mod plan;
mod programs;
mod report;
mod server;
mod watch;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub use programs::Program;
pub use report::{Check, Report, SCHEMA};

use crate::capture::CaptureError;
use crate::config::SourceKind;
use client::Sent;
use plan::Talk;
use server::{Gate, Served};
use watch::Watch;

/// Nothing on loopback takes this long: whatever is waited for is missing then.
const PATIENCE: Duration = Duration::from_secs(20);

/// The host can't run the self-test.
#[derive(Debug, thiserror::Error)]
pub enum SelftestError {
    /// The source can't be opened.
    #[error(transparent)]
    Source(#[from] CaptureError),
    /// Loopback can't carry the traffic.
    #[error("loopback carries no traffic ({0}); mend: ip link set lo up")]
    Loopback(std::io::Error),
    /// A thread can't be started.
    #[error("a thread can't be started ({0}); mend: raise the limit of processes (ulimit -u)")]
    Thread(std::io::Error),
}

/// Everything that was done, for comparison with what was observed.
struct Traffic {
    talks: Vec<Talk>,
    sent: Mutex<Vec<Sent>>,
    served: Mutex<Vec<Served>>,
}

/// Runs the self-test with the source that `kind` names.
///
/// # Errors
/// When this host can't run it; a wrong observation is no error but a failed [`Check`].
pub fn run(kind: SourceKind) -> Result<Report, SelftestError> {
    let listeners = listeners().map_err(SelftestError::Loopback)?;
    let endpoints: Vec<SocketAddr> = listeners
        .iter()
        .map(TcpListener::local_addr)
        .collect::<Result<_, _>>()
        .map_err(SelftestError::Loopback)?;
    let traffic = Traffic {
        talks: plan::talks(&endpoints),
        sent: Mutex::default(),
        served: Mutex::default(),
    };
    let mut watch = Watch::open(kind, &endpoints)?;
    let mut checks = exercise(&listeners, &traffic, &mut watch)?;
    let closing = watch.close();
    checks.extend(check::window(closing.as_ref(), traffic.talks.len()));
    checks.extend(check::observations(&watch.rows(), &traffic));
    Ok(Report::new(watch.source(), &endpoints, checks, programs::loaded()))
}

/// A listener on IPv4, and one on IPv6 where the host has it.
fn listeners() -> std::io::Result<Vec<TcpListener>> {
    let mut listeners = vec![TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?];
    listeners.extend(TcpListener::bind((IpAddr::V6(Ipv6Addr::LOCALHOST), 0)).ok());
    Ok(listeners)
}

/// Holds every request open at once, lets all of them be answered, and waits for their end.
fn exercise(
    listeners: &[TcpListener],
    traffic: &Traffic,
    watch: &mut Watch,
) -> Result<Vec<Check>, SelftestError> {
    let gate = Gate::default();
    let finished = AtomicUsize::new(0);
    let count = traffic.talks.len();
    std::thread::scope(|scope| {
        // Whatever fails below, threads that wait for the gate must get through it.
        let _open_at_last = gate.opener();
        client::foreign().map_err(SelftestError::Loopback)?;
        for listener in listeners {
            let talks = traffic
                .talks
                .iter()
                .filter(|it| Ok(it.endpoint) == listener.local_addr().map_err(drop));
            server::start(scope, listener, talks.count(), traffic, &gate)
                .map_err(SelftestError::Thread)?;
        }
        for talk in &traffic.talks {
            let done = || {
                client::perform(talk, traffic);
                finished.fetch_add(1, Ordering::SeqCst);
            };
            std::thread::Builder::new().spawn_scoped(scope, done).map_err(SelftestError::Thread)?;
        }
        let full = watch.poll_until(PATIENCE, |gauges| gauges == (count, count));
        gate.open();
        let deadline = Instant::now() + PATIENCE;
        while finished.load(Ordering::SeqCst) < count && Instant::now() < deadline {
            watch.poll();
        }
        let empty = watch.poll_until(PATIENCE, |gauges| gauges == (0, 0));
        Ok(check::gauges(count, full, empty))
    })
}
