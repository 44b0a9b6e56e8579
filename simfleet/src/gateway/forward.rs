//! Finds a backend that takes the request, trying others when one refuses.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::Gateway;
use super::head::for_backend;
use super::route::{InFlight, Inspected};
use super::session::Client;
use super::upstream::{open, quiet};
use crate::config::{GatewayKeepAlive, Upstream};
use crate::http::Request;
use crate::policy::{Choice, Lookup};

/// What came of looking for a backend.
pub(super) enum Connected {
    /// The request was sent on this connection.
    Yes {
        /// To the backend.
        stream: TcpStream,
        /// The request's share of its load.
        load: InFlight,
    },
    /// None took it; the answer to the client.
    No {
        /// HTTP status.
        status: u16,
        /// LoxiLB's error code.
        code: &'static str,
    },
}

/// Sends the request to the backend that the client's connection is pinned to, else to one that the policy
/// chooses. `keep` asks the backend to keep the connection.
pub(super) async fn connect(
    gateway: &Gateway,
    client: &mut Client,
    request: &Request,
    inspected: &Inspected,
    keep: bool,
) -> Connected {
    let bytes = for_backend(request, keep);
    if let Some((stream, endpoint)) = client.pinned.take().filter(|(stream, _)| quiet(stream)) {
        let load = InFlight::new(&endpoint);
        // A write that fails shows as a connection that ends without an answer.
        return match write(stream, &load, &bytes).await {
            Ok(stream) => Connected::Yes { stream, load },
            Err(_) => Connected::No { status: 502, code: "backend_unreachable" },
        };
    }
    choose(gateway, inspected, &bytes).await
}

async fn choose(gateway: &Gateway, inspected: &Inspected, bytes: &[u8]) -> Connected {
    let (mut tried, router) = (Vec::new(), gateway.router());
    while let Some((choice, load)) = router.choose(inspected, &tried) {
        if tried.is_empty() {
            note(gateway, choice);
        }
        tried.push(choice.endpoint);
        match send(gateway, &load, bytes).await {
            Ok(stream) => {
                load.endpoint().mark(true);
                return Connected::Yes { stream, load };
            }
            Err(e) => {
                load.endpoint().mark(false);
                let addr = load.endpoint().addr;
                gateway.log.line("WARN", &format!("endpoint {addr} inactive: {e}"));
            }
        }
    }
    if tried.is_empty() {
        Connected::No { status: 503, code: "no_healthy_backend" }
    } else {
        Connected::No { status: 502, code: "backend_unreachable" }
    }
}

pub(super) async fn send(
    gateway: &Gateway,
    load: &InFlight,
    bytes: &[u8],
) -> std::io::Result<TcpStream> {
    let pooled = gateway.pools().then(|| load.endpoint().pool.take()).flatten();
    let stream = match pooled {
        Some(stream) => stream,
        None => open(load.endpoint()).await?,
    };
    write(stream, load, bytes).await
}

pub(super) async fn write(
    mut stream: TcpStream,
    load: &InFlight,
    bytes: &[u8],
) -> std::io::Result<TcpStream> {
    load.endpoint().bytes.fetch_add(bytes.len() as u64, Relaxed);
    stream.write_all(bytes).await?;
    Ok(stream)
}

/// Keeps the backend's connection for the next request.
pub(super) fn keep(gateway: &Gateway, client: &mut Client, stream: TcpStream, load: &InFlight) {
    match gateway.config.keep_alive.map(|k| k.upstream) {
        Some(Upstream::Pinned) => client.pinned = Some((stream, Arc::clone(load.shared()))),
        Some(Upstream::Pooled) => load.endpoint().pool.put(stream),
        None => {}
    }
}

impl Gateway {
    fn pools(&self) -> bool {
        let pooled = |k: GatewayKeepAlive| k.upstream == Upstream::Pooled;
        self.config.keep_alive.is_some_and(pooled)
    }
}

/// The decision's traces: counters, and the mode line at the first lookup.
fn note(gateway: &Gateway, choice: Choice) {
    if choice.lookup == Lookup::NotAsked {
        return;
    }
    gateway.log.mode_line_once();
    gateway.counters.lookup(choice);
}
