//! Prefill/decode disaggregation as LoxiLB does it for vLLM: one request computes the prompt at a prefill
//! endpoint, then the client's own goes to a decode endpoint, and the request id of both is the receipt.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use protocol::http1::{Method, ResponseDecoder, ResponseEvent};
use protocol::receipt::Receipt;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use super::Gateway;
use super::forward::{Connected, send, write};
use super::head::for_backend;
use super::route::{Endpoint, InFlight, Inspected};
use super::upstream::open;
use crate::fault::GatewayFault;
use crate::http::Request;

/// The field that carries the receipt to the engines.
const REQUEST_ID: &str = "x-request-id";

/// The prefill endpoints, asked in turn.
pub(super) struct Prefill {
    pub(super) endpoints: Vec<Arc<Endpoint>>,
    next: AtomicUsize,
}

impl Prefill {
    fn new(endpoints: Vec<SocketAddr>) -> Self {
        let endpoints = endpoints.into_iter().map(Endpoint::new).collect();
        Self { endpoints, next: AtomicUsize::new(0) }
    }

    /// Every endpoint once, beginning with the next in turn.
    fn turn(&self) -> impl Iterator<Item = &Arc<Endpoint>> {
        let first = self.next.fetch_add(1, Ordering::Relaxed) % self.endpoints.len().max(1);
        self.endpoints.iter().cycle().skip(first).take(self.endpoints.len())
    }

    /// What a gateway that lies names instead of `real`: another prefill endpoint, or the two exchanged.
    fn lie(&self, real: Receipt) -> Receipt {
        let other = self.endpoints.iter().map(|it| it.addr).find(|addr| *addr != real.prefill);
        match other {
            Some(prefill) => Receipt { prefill, ..real },
            None => Receipt { prefill: real.decode, decode: real.prefill },
        }
    }
}

/// The pool, where there is one.
pub(super) fn pool(endpoints: Vec<SocketAddr>) -> Option<Arc<Prefill>> {
    (!endpoints.is_empty()).then(|| Arc::new(Prefill::new(endpoints)))
}

/// Prefills, then sends the request to a decode endpoint.
pub(super) async fn connect(
    gateway: &Gateway,
    prefill: &Prefill,
    request: &Request,
    inspected: &Inspected,
    fault: Option<GatewayFault>,
) -> Connected {
    let unavailable = Connected::No { status: 503, code: "pd_pool_unavailable" };
    let Some((_, load)) = gateway.router().choose(inspected, &[]) else { return unavailable };
    for endpoint in prefill.turn() {
        let real = Receipt { prefill: endpoint.addr, decode: load.endpoint().addr };
        let told = match fault {
            Some(GatewayFault::WrongReceipt) => prefill.lie(real),
            _ => real,
        };
        let id = told.request_id(&suffix(request));
        if let Err(why) = compute(endpoint, &prefill_request(request, &id)).await {
            gateway.log.line("WARN", &format!("prefill {} failed: {why}", endpoint.addr));
            continue;
        }
        let bytes = for_backend(&decode_request(request, &id), false);
        return match send(gateway, &load, &bytes).await {
            Ok(stream) => Connected::Yes { stream, load },
            Err(_) => Connected::No { status: 502, code: "backend_unreachable" },
        };
    }
    unavailable
}

/// 32 hexadecimal digits: the trace id where there is one, so that an answer can be found in a capture.
fn suffix(request: &Request) -> String {
    let unnamed = || format!("{:032x}", request.body.len());
    request.head.trace_id().map_or_else(unnamed, str::to_owned)
}

/// Sends the prefill and reads its answer to the end.
async fn compute(endpoint: &Arc<Endpoint>, request: &Request) -> std::io::Result<()> {
    let load = InFlight::new(endpoint);
    let bytes = for_backend(request, false);
    let mut stream = write(open(endpoint).await?, &load, &bytes).await?;
    let mut decoder = ResponseDecoder::new(Method::from_token("POST"));
    let (mut status, mut buffer) = (0, vec![0; 4096]);
    while !decoder.is_complete() {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        decoder.feed(&buffer[..read], |event| {
            if let ResponseEvent::Head(head) = event {
                status = head.status;
            }
        });
    }
    if status == 200 { Ok(()) } else { Err(std::io::Error::other(format!("status {status}"))) }
}

/// One token, not streamed (vLLM's prefill call: `max_tokens` 1 and `do_remote_decode`).
fn prefill_request(request: &Request, id: &str) -> Request {
    with_body(request, id, |body| {
        body["max_tokens"] = json!(1);
        body["stream"] = json!(false);
        body["kv_transfer_params"] = json!({ "do_remote_decode": true });
        if let Some(fields) = body.as_object_mut() {
            fields.remove("stream_options");
            fields.remove("max_completion_tokens");
        }
    })
}

/// The client's own request, whose prompt is computed already.
fn decode_request(request: &Request, id: &str) -> Request {
    with_body(request, id, |body| {
        body["kv_transfer_params"] = json!({ "do_remote_prefill": true });
    })
}

fn with_body(request: &Request, id: &str, change: impl FnOnce(&mut Value)) -> Request {
    let mut request = request.clone();
    // Only readable completions come here; anything else stays as it is.
    if let Ok(mut body) = serde_json::from_slice::<Value>(&request.body) {
        change(&mut body);
        request.body = Bytes::from(body.to_string());
    }
    request.head.fields.retain(|(name, _)| !name.eq_ignore_ascii_case(REQUEST_ID));
    request.head.fields.push((REQUEST_ID.to_owned(), Bytes::from(id.to_owned())));
    request
}
