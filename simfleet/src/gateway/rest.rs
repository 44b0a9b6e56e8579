//! The control plane, in the shape of LoxiLB's REST API.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
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

async fn rules(State(control): State<Control>) -> Json<Value> {
    let gateway = &control.gateway;
    let policy = &gateway.config.policy;
    let exact = policy.algorithm == Algorithm::CacheAware;
    let mut service = json!({
        "externalIP": gateway.vip.ip().to_string(),
        "port": gateway.vip.port(),
        "protocol": "tcp",
        "sel": sel(policy.algorithm),
        "mode": 4,
        "sse_mode": true,
        "pd_disagg_mode": 0,
        "kvExactMode": if exact { 3 } else { 0 },
        "name": policy.label(),
    });
    if let (true, Some(fields)) = (exact, service.as_object_mut()) {
        fields.insert("kvBlockSize".to_owned(), json!(policy.tokenizer().block_tokens));
        fields.insert("kvEngineType".to_owned(), json!("vllm"));
        fields.insert("kvHashAlgo".to_owned(), json!("sha256_cbor"));
    }
    let endpoints: Vec<_> = gateway.router.endpoints.iter().map(|e| endpoint(e)).collect();
    Json(json!({ "lbAttr": [{ "serviceArguments": service, "endpoints": endpoints }] }))
}

fn endpoint(endpoint: &super::route::Endpoint) -> Value {
    use std::sync::atomic::Ordering::Relaxed;
    let (connections, bytes) = (endpoint.connections.load(Relaxed), endpoint.bytes.load(Relaxed));
    json!({
        "endpointIP": endpoint.addr.ip().to_string(),
        "targetPort": endpoint.addr.port(),
        "weight": 1,
        "ep_role": 0,
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
