//! Finds a backend that takes the request, trying others when one refuses.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::Gateway;
use super::head::for_backend;
use super::route::{InFlight, InspectedPrompt};
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

pub(super) async fn connect(
    gateway: &Gateway,
    request: &Request,
    prompt: &InspectedPrompt,
) -> Connected {
    let mut tried = Vec::new();
    while let Some((choice, load)) = gateway.router.choose(prompt, &tried) {
        if tried.is_empty() {
            note(gateway, choice);
        }
        tried.push(choice.endpoint);
        match send(request, &load).await {
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

async fn send(request: &Request, load: &InFlight) -> std::io::Result<TcpStream> {
    use std::sync::atomic::Ordering::Relaxed;
    let endpoint = load.endpoint();
    let mut stream = TcpStream::connect(endpoint.addr).await?;
    stream.set_nodelay(true)?;
    let bytes = for_backend(request);
    endpoint.connections.fetch_add(1, Relaxed);
    endpoint.bytes.fetch_add(bytes.len() as u64, Relaxed);
    stream.write_all(&bytes).await?;
    Ok(stream)
}

/// The decision's traces: counters, and the mode line at the first lookup.
fn note(gateway: &Gateway, choice: Choice) {
    if choice.lookup == Lookup::NotAsked {
        return;
    }
    gateway.log.mode_line_once();
    gateway.counters.lookup(choice);
}
