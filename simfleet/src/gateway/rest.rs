//! The control plane, in the shape of LoxiLB's REST API.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};

use super::{Gateway, metrics};
use crate::config::Algorithm;

/// What the handlers share.
#[derive(Clone)]
struct Control {
    gateway: Arc<Gateway>,
    /// The page as of the last tick; `None` renders at each call.
    page: Option<Arc<RwLock<String>>>,
}

/// The control plane's routes. A metrics tick runs on the current runtime as long as they live.
pub(crate) fn app(gateway: Arc<Gateway>) -> Router {
    let page = gateway.config.metrics_tick.map(|period| ticking_page(&gateway, period));
    Router::new()
        .route("/netlox/v1/config/loadbalancer/all", get(rules))
        .route("/netlox/v1/config/loadbalancer", post(add_rule))
        .route("/netlox/v1/version", get(version))
        .route("/netlox/v1/metrics", get(metrics_page))
        .route("/netlox/v1/logs", get(logs))
        .with_state(Control { gateway, page })
}

fn ticking_page(gateway: &Arc<Gateway>, period: Duration) -> Arc<RwLock<String>> {
    let page = Arc::new(RwLock::new(metrics::render(gateway)));
    let (weak, gateway) = (Arc::downgrade(&page), Arc::clone(gateway));
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(period.max(Duration::from_millis(1))).await;
            let Some(page) = weak.upgrade() else { return };
            *page.write().unwrap_or_else(PoisonError::into_inner) = metrics::render(&gateway);
        }
    });
    page
}

/// LoxiLB's number of the algorithm: 0 round robin, 1 hash, 4 least connections, 8 consistent hash with
/// bounded load. A prefix-routing rule names in `sel` what it falls back to.
pub(super) fn sel(algorithm: Algorithm) -> u8 {
    match algorithm {
        Algorithm::RoundRobin => 0,
        Algorithm::ConsistentHash => 1,
        Algorithm::BoundedLoadHash => 8,
        Algorithm::LeastConnections | Algorithm::CacheAware => 4,
    }
}

/// `ep_role` of LoxiLB's rules.
const PREFILL: u64 = 1;
const DECODE: u64 = 2;

/// Replaces the endpoints of the gateway's one rule, in the shape that [`rules`] answers.
async fn add_rule(State(control): State<Control>, body: String) -> (StatusCode, Json<Value>) {
    let refused = |why: &str| (StatusCode::BAD_REQUEST, Json(json!({ "message": why })));
    let Ok(rule) = serde_json::from_str::<Value>(&body) else { return refused("no JSON") };
    let (gateway, service) = (&control.gateway, &rule["serviceArguments"]);
    if service["externalIP"] != json!(gateway.vip.ip().to_string())
        || service["port"] != json!(gateway.vip.port())
    {
        return refused("the simulated gateway has one rule, that of its VIP");
    }
    let (mut endpoints, mut prefill) = (Vec::new(), Vec::new());
    for row in rule["endpoints"].as_array().into_iter().flatten() {
        let ip = row["endpointIP"].as_str().and_then(|ip| ip.parse::<IpAddr>().ok());
        let port = row["targetPort"].as_u64().and_then(|port| u16::try_from(port).ok());
        let Some(address) = ip.zip(port) else { return refused("an endpoint without address") };
        let pool = if row["ep_role"] == PREFILL { &mut prefill } else { &mut endpoints };
        pool.push(SocketAddr::from(address));
    }
    if endpoints.is_empty() {
        return refused("no endpoint");
    }
    gateway.set_endpoints(endpoints, prefill);
    (StatusCode::OK, Json(json!({ "result": "Success" })))
}

async fn rules(State(control): State<Control>) -> Json<Value> {
    let gateway = &control.gateway;
    let policy = &gateway.config.policy;
    let exact = policy.algorithm == Algorithm::CacheAware;
    let (router, prefill) = (gateway.router(), gateway.prefill());
    let mut service = json!({
        "externalIP": gateway.vip.ip().to_string(),
        "port": gateway.vip.port(),
        "protocol": "tcp",
        "sel": sel(policy.algorithm),
        "mode": 4,
        "sse_mode": true,
        "pd_disagg_mode": u8::from(prefill.is_some()),
        "kvExactMode": if exact { 3 } else { 0 },
        "name": policy.label(),
    });
    if let (true, Some(fields)) = (exact, service.as_object_mut()) {
        fields.insert("kvBlockSize".to_owned(), json!(policy.tokenizer().block_tokens));
        fields.insert("kvEngineType".to_owned(), json!("vllm"));
        fields.insert("kvHashAlgo".to_owned(), json!("sha256_cbor"));
    }
    let decodes = if prefill.is_some() { DECODE } else { 0 };
    let pool = prefill.iter().flat_map(|pool| &pool.endpoints).map(|it| (it, PREFILL));
    let all = pool.chain(router.endpoints.iter().map(|it| (it, decodes)));
    let endpoints: Vec<_> = all.map(|(it, role)| endpoint(it, role)).collect();
    Json(json!({ "lbAttr": [{ "serviceArguments": service, "endpoints": endpoints }] }))
}

fn endpoint(endpoint: &super::route::Endpoint, role: u64) -> Value {
    use std::sync::atomic::Ordering::Relaxed;
    let (connections, bytes) = (endpoint.connections.load(Relaxed), endpoint.bytes.load(Relaxed));
    json!({
        "endpointIP": endpoint.addr.ip().to_string(),
        "targetPort": endpoint.addr.port(),
        "weight": 1,
        "ep_role": role,
        "state": if endpoint.up() { "active" } else { "inactive" },
        "counter": format!("{connections}:{bytes}"),
    })
}

async fn version() -> Json<Value> {
    Json(json!({
        "version": concat!("simfleet-", env!("CARGO_PKG_VERSION")),
        "buildInfo": "simulated gateway, not LoxiLB",
        "product": "loxilb-inference-gateway (simulated by simfleet)",
    }))
}

async fn metrics_page(State(control): State<Control>) -> Response {
    let text = match &control.page {
        Some(page) => page.read().unwrap_or_else(PoisonError::into_inner).clone(),
        None => metrics::render(&control.gateway),
    };
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

async fn logs(State(control): State<Control>) -> String {
    control.gateway.log.text()
}
