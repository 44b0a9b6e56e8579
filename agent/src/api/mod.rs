//! The agent's HTTP API (`docs/agent-api.md`).

mod access;
mod auth;
mod error;
mod handlers;
mod legs;
mod limited;
mod server;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::routing::{delete, get, post};
use axum::{Router, middleware};
use protocol::Nanos;

pub use access::Access;
pub use auth::Token;
pub use error::ApiError;
pub use server::{ApiLimits, serve};

use crate::capture::tcx::Missing;
use crate::discovery::DiscoveryStatus;
use crate::evidence::Collector;
use crate::sockdiag::NamespaceView;
use crate::worker::Handle;

/// Bodies are a label or a number.
const MAX_BODY: usize = 64 * 1024;

/// One interface, as the status names it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct InterfaceName {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
}

/// Network namespaces whose sockets are listed, as the status names them.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Sockdiag {
    /// The namespaces.
    pub namespaces: Vec<NamespaceView>,
    /// What kept the agent from looking into others.
    pub missing: Vec<Missing>,
}

/// What the API says about the agent beyond what the worker knows.
#[derive(Clone, Debug)]
pub struct About {
    /// Name of this agent.
    pub name: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Name of the source.
    pub source: &'static str,
    /// When the agent started.
    pub started: Nanos,
    /// When the process started, in seconds of Unix time.
    pub started_unix_s: f64,
    /// Size of the ring buffer.
    pub ring_bytes: u64,
    /// Interfaces watched.
    pub interfaces: Vec<InterfaceName>,
    /// Where sockets are listed.
    pub sockdiag: Sockdiag,
    /// What is known of LoxiLB on this host.
    pub evidence: Arc<Collector>,
    /// How endpoints are discovered, if they are.
    pub discovery: Option<Arc<DiscoveryStatus>>,
}

/// What every handler needs.
#[derive(Clone)]
struct State {
    worker: Handle,
    about: Arc<About>,
    access: Arc<Access>,
    limits: ApiLimits,
}

/// The API's routes; while there is a token, every call needs it.
pub fn router(worker: Handle, about: About, access: Arc<Access>, limits: ApiLimits) -> Router {
    let state = State { worker, about: Arc::new(about), access: Arc::clone(&access), limits };
    let routes = Router::new()
        .route("/v1/status", get(handlers::status))
        .route("/metrics", get(handlers::metrics))
        .route("/v1/windows", post(handlers::open))
        .route("/v1/windows/{id}", delete(handlers::delete))
        .route("/v1/windows/{id}/close", post(handlers::close))
        .route("/v1/windows/{id}/observations", get(handlers::observations))
        .route("/v1/windows/{id}/legs", get(legs::rows))
        .route("/v1/windows/{id}/delivery", get(legs::delivery))
        .route("/v1/windows/{id}/prefixes", get(handlers::prefixes))
        .route("/v1/windows/{id}/inflight", get(handlers::inflight))
        .route("/v1/windows/{id}/concentration", get(handlers::concentration))
        .route("/v1/inflight", get(handlers::gauges))
        .route("/v1/evidence", get(handlers::evidence))
        .fallback(handlers::unknown_path)
        .method_not_allowed_fallback(handlers::wrong_method)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn_with_state(state.clone(), limited::read_body))
        .with_state(state);
    routes
        .layer(middleware::from_fn_with_state(access, auth::require))
        .layer(middleware::map_response(limited::no_sniffing))
}

#[cfg(test)]
mod tests;
