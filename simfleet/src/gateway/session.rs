//! One client connection of a gateway: one request, its routing, its answer.

use std::io;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::Gateway;
use super::forward::{Connected, connect};
use super::relay::{Ended, relay};
use super::route::InspectedPrompt;
use crate::fault::{FAULT_MODEL_PREFIX, GatewayFault};
use crate::http::{Connection, ReadError, Request, close_delimited};
use crate::openai::{Api, CompletionRequest};

/// Larger JSON bodies are routed without being looked at, as LoxiLB does (1 MiB x 3/4).
const INSPECT_MAX: usize = 768 * 1024;

/// Both directions of the client's connection.
pub(super) struct Client {
    pub(super) input: Connection<OwnedReadHalf>,
    pub(super) output: OwnedWriteHalf,
}

pub(super) async fn run(gateway: Arc<Gateway>, stream: TcpStream) {
    let _active = gateway.counters.connection();
    if let Err(e) = serve(&gateway, stream).await {
        tracing::debug!(gateway = %gateway.config.name, "connection ended: {e}");
    }
}

async fn serve(gateway: &Gateway, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (read, write) = stream.into_split();
    let mut client = Client { input: Connection::new(read), output: write };
    let request = match client.input.request(&mut client.output).await {
        Ok(request) => request,
        Err(ReadError::Closed) => return Ok(()),
        Err(ReadError::Io(e)) => return Err(e),
        Err(ReadError::Bad(status, why)) => {
            return fail(gateway, client, status, "bad_request", why).await;
        }
    };
    let (prompt, wanted) = inspect(gateway, &request);
    let fault = wanted.as_ref().and_then(requested_fault).or_else(|| gateway.fault());
    if wanted.is_some_and(|w| w.stream()) {
        gateway.counters.ai_request();
    }
    match connect(gateway, &request, &prompt).await {
        Connected::No { status, code } => {
            fail(gateway, client, status, code, "simulated gateway: no backend answered").await
        }
        Connected::Yes { stream, load } => {
            let ended = relay(gateway, &mut client, stream, load.endpoint(), fault).await?;
            finish(gateway, client, ended).await
        }
    }
}

async fn finish(gateway: &Gateway, client: Client, ended: Ended) -> io::Result<()> {
    match ended {
        Ended::Answered(status) | Ended::ClientLeft(Some(status)) => {
            gateway.counters.response(status);
        }
        Ended::ClientLeft(None) => {}
        Ended::BackendReset => {
            client.output.as_ref().set_zero_linger()?;
            // Dropping the half would send an orderly end first.
            client.output.forget();
        }
        Ended::NoAnswer => {
            let why = "simulated gateway: the backend closed without an answer";
            return fail(gateway, client, 502, "backend_unreachable", why).await;
        }
    }
    Ok(())
}

/// An error of the gateway's own, in LoxiLB's form.
async fn fail(
    gateway: &Gateway,
    mut client: Client,
    status: u16,
    code: &str,
    why: &str,
) -> io::Result<()> {
    gateway.counters.response(status);
    let body = serde_json::json!({ "error": code, "message": why }).to_string();
    client.output.write_all(&close_delimited(status, "application/json", &body)).await
}

/// What the policy may know of the request, and the request if it is a readable completion.
fn inspect(gateway: &Gateway, request: &Request) -> (InspectedPrompt, Option<CompletionRequest>) {
    if Api::of_path(request.head.path()).is_none() || request.head.method != "POST" {
        return (InspectedPrompt::None, None);
    }
    if request.chunked || request.body.len() > INSPECT_MAX {
        return (InspectedPrompt::Unread, None);
    }
    match serde_json::from_slice::<CompletionRequest>(&request.body) {
        Ok(wanted) => (gateway.router.inspect(&wanted), Some(wanted)),
        Err(_) => (InspectedPrompt::Unread, None),
    }
}

fn requested_fault(wanted: &CompletionRequest) -> Option<GatewayFault> {
    wanted.model.as_deref()?.strip_prefix(FAULT_MODEL_PREFIX)?.parse().ok()
}
