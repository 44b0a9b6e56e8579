//! One client connection of a gateway: its requests, their routing, their answers.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use protocol::http1::{Method, ResponseDecoder};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::Gateway;
use super::disagg;
use super::forward::{Connected, connect, keep};
use super::relay::{Ended, relay};
use super::route::{Endpoint, Inspected, InspectedPrompt};
use crate::fault::{FAULT_MODEL_PREFIX, GatewayFault};
use crate::http::{Connection, ReadError, Request, close_delimited};
use crate::openai::{Api, CompletionRequest};

/// Larger JSON bodies are routed without being looked at, as LoxiLB does (1 MiB x 3/4).
const INSPECT_MAX: usize = 768 * 1024;

/// Both directions of the client's connection.
pub(super) struct Client {
    pub(super) input: Connection<OwnedReadHalf>,
    pub(super) output: OwnedWriteHalf,
    /// The backend that a kept connection stays with, and the connection to it.
    pub(super) pinned: Option<(TcpStream, Arc<Endpoint>)>,
    /// The client's address.
    source: IpAddr,
    /// Requests read.
    served: u64,
}

/// Whether the client's connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Request,
    Close,
    Reset,
}

pub(super) async fn run(gateway: Arc<Gateway>, stream: TcpStream, source: IpAddr) {
    let _active = gateway.counters.connection();
    if let Err(e) = serve(&gateway, stream, source).await {
        tracing::debug!(gateway = %gateway.config.name, "connection ended: {e}");
    }
}

async fn serve(gateway: &Gateway, stream: TcpStream, source: IpAddr) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (read, output) = stream.into_split();
    let input = Connection::new(read);
    let mut client = Client { input, output, pinned: None, source, served: 0 };
    loop {
        let request = match client.next(gateway).await {
            Ok(request) => request,
            Err(ReadError::Closed) => return Ok(()),
            Err(ReadError::Io(e)) => return Err(e),
            Err(ReadError::Bad(status, why)) => {
                return fail(gateway, &mut client, status, "bad_request", why).await;
            }
        };
        match answer(gateway, &mut client, &request).await? {
            Next::Request => {}
            Next::Close => return Ok(()),
            Next::Reset => {
                client.output.as_ref().set_zero_linger()?;
                // Dropping the half would send an orderly end first.
                client.output.forget();
                return Ok(());
            }
        }
    }
}

async fn answer(gateway: &Gateway, client: &mut Client, request: &Request) -> io::Result<Next> {
    let (prompt, wanted) = inspect(gateway, request);
    let fault = wanted.as_ref().and_then(requested_fault).or_else(|| gateway.fault());
    let prefill = gateway.prefill().filter(|_| wanted.is_some());
    if wanted.is_some_and(|w| w.stream()) {
        gateway.counters.ai_request();
    }
    let keeps = prefill.is_none() && client.keeps(gateway, request);
    let session = session_of(request).map(str::to_owned);
    let inspected = Inspected { prompt, session, source: client.source };
    let connected = match prefill {
        Some(prefill) => disagg::connect(gateway, &prefill, request, &inspected, fault).await,
        None => connect(gateway, client, request, &inspected, keeps).await,
    };
    match connected {
        Connected::No { status, code } => {
            let why = "simulated gateway: no backend answered";
            fail(gateway, client, status, code, why).await?;
            Ok(Next::Close)
        }
        Connected::Yes { mut stream, load } => {
            let method = Method::from_token(&request.head.method);
            let end = keeps.then(|| ResponseDecoder::new(method));
            let ended = relay(gateway, client, &mut stream, load.endpoint(), fault, end).await?;
            if matches!(ended, Ended::Kept(_)) {
                keep(gateway, client, stream, &load);
            }
            finish(gateway, client, ended).await
        }
    }
}

async fn finish(gateway: &Gateway, client: &mut Client, ended: Ended) -> io::Result<Next> {
    match ended {
        Ended::Kept(status) => {
            gateway.counters.response(status);
            return Ok(Next::Request);
        }
        Ended::Answered(status) | Ended::ClientLeft(Some(status)) => {
            gateway.counters.response(status);
        }
        Ended::ClientLeft(None) => {}
        Ended::BackendReset => return Ok(Next::Reset),
        Ended::NoAnswer => {
            let why = "simulated gateway: the backend closed without an answer";
            fail(gateway, client, 502, "backend_unreachable", why).await?;
        }
    }
    Ok(Next::Close)
}

impl Client {
    /// The next request; an idle connection that is closed counts as closed by the client.
    async fn next(&mut self, gateway: &Gateway) -> Result<Request, ReadError> {
        let idle = gateway.config.keep_alive.and_then(|k| k.limits().idle());
        if self.served > 0 && !self.input.begins(idle).await {
            return Err(ReadError::Closed);
        }
        let request = self.input.request(&mut self.output).await?;
        self.served += 1;
        Ok(request)
    }

    /// Whether the connection may carry another request after this one.
    fn keeps(&self, gateway: &Gateway, request: &Request) -> bool {
        let kept = gateway.config.keep_alive;
        request.head.keep_alive() && kept.is_some_and(|k| !k.limits().last(self.served))
    }
}

/// The conversation that a request belongs to: the fields that LoxiLB takes for it.
fn session_of(request: &Request) -> Option<&str> {
    const FIELDS: [&str; 4] = ["x-session-id", "x-conversation-id", "x-request-id", "x-trace-id"];
    FIELDS.iter().find_map(|name| request.head.field(name))
}

/// An error of the gateway's own, in LoxiLB's form.
async fn fail(
    gateway: &Gateway,
    client: &mut Client,
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
        Ok(wanted) => (gateway.router().inspect(&wanted), Some(wanted)),
        Err(_) => (InspectedPrompt::Unread, None),
    }
}

fn requested_fault(wanted: &CompletionRequest) -> Option<GatewayFault> {
    wanted.model.as_deref()?.strip_prefix(FAULT_MODEL_PREFIX)?.parse().ok()
}
