//! One function per call.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State as Shared};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use protocol::Nanos;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot::Sender;

use super::error::ApiError;
use super::{InterfaceName, Sockdiag, State};
use crate::discovery::DiscoveryView;
use crate::endpoint::Endpoint;
use crate::evidence::Evidence;
use crate::inflight::{Concentration, GAUGES_SCHEMA, GaugeRow, RoleSpread};
use crate::metrics::{self, Process};
use crate::prompt::Salt;
use crate::window::{Closing, Lease, Reason, WindowCounters, WindowError};
use crate::worker::{Command, Ending, Opened, Opening};

const STATUS_SCHEMA: &str = "goodput.agent-status/1";
/// Windows are named for people.
const MAX_LABEL: usize = 256;
/// How long a close waits for open requests unless it says otherwise.
const DEFAULT_DRAIN_MS: u64 = 1000;
const NDJSON: &str = "application/x-ndjson";

/// Keys are written in this order.
#[derive(Serialize)]
pub(super) struct StatusBody {
    schema: &'static str,
    name: String,
    version: &'static str,
    kernel: String,
    clock: &'static str,
    source: &'static str,
    started_ns: Nanos,
    now_ns: Nanos,
    interfaces: Vec<InterfaceName>,
    endpoints: Vec<Endpoint>,
    counters: WindowCounters,
    complete: bool,
    reasons: BTreeSet<Reason>,
    sockdiag: Sockdiag,
    discovery: Option<DiscoveryView>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenBody {
    label: String,
    lease_s: Option<u64>,
    /// Any value, so that no error repeats a secret of the wrong type.
    prefix_salt: Option<serde_json::Value>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CloseBody {
    drain_ms: Option<u64>,
    lease_s: Option<u64>,
}

fn lease(seconds: Option<u64>, default: Lease) -> Result<Lease, ApiError> {
    let lease = seconds.map_or(Ok(default), Lease::from_seconds);
    lease.map_err(ApiError::BadLease)
}

fn salt(value: &serde_json::Value) -> Result<Salt, ApiError> {
    value.as_str().and_then(|text| text.parse().ok()).ok_or(ApiError::BadSalt)
}

#[derive(Serialize)]
pub(super) struct GaugesBody {
    schema: &'static str,
    at_ns: Nanos,
    endpoints: Vec<GaugeRow>,
    concentration: Vec<RoleSpread>,
}

pub(super) async fn ask<T>(
    state: &State,
    command: impl FnOnce(Sender<T>) -> Command,
) -> Result<T, ApiError> {
    state.worker.ask(command).await.ok_or(ApiError::Window(WindowError::Stopping))
}

fn body<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| ApiError::BadBody(error.to_string()))
}

pub(super) fn lines(text: String) -> Response {
    ([(header::CONTENT_TYPE, NDJSON)], text).into_response()
}

pub(super) async fn status(Shared(state): Shared<State>) -> Result<Json<StatusBody>, ApiError> {
    let status = ask(&state, Command::Status).await?;
    let about = &state.about;
    Ok(Json(StatusBody {
        schema: STATUS_SCHEMA,
        name: about.name.clone(),
        version: env!("CARGO_PKG_VERSION"),
        kernel: about.kernel.clone(),
        clock: "monotonic",
        source: about.source,
        started_ns: about.started,
        now_ns: status.now,
        interfaces: about.interfaces.clone(),
        endpoints: status.endpoints,
        counters: status.counters,
        complete: status.reasons.is_empty(),
        reasons: status.reasons,
        sockdiag: about.sockdiag.clone(),
        discovery: about.discovery.as_ref().map(|it| it.view()),
    }))
}

pub(super) async fn open(
    Shared(state): Shared<State>,
    bytes: Bytes,
) -> Result<(StatusCode, Json<Opened>), ApiError> {
    let OpenBody { label, lease_s, prefix_salt } = body(&bytes)?;
    if label.len() > MAX_LABEL {
        return Err(ApiError::LongLabel);
    }
    let prefix_salt = prefix_salt.as_ref().map(salt).transpose()?;
    let opening = Opening { label, lease: lease(lease_s, Lease::OPEN)?, prefix_salt };
    let opened = ask(&state, |reply| Command::Open(opening, reply)).await??;
    Ok((StatusCode::CREATED, Json(opened)))
}

pub(super) async fn close(
    Shared(state): Shared<State>,
    Path(id): Path<String>,
    bytes: Bytes,
) -> Result<Json<Closing>, ApiError> {
    let CloseBody { drain_ms, lease_s } =
        if bytes.is_empty() { CloseBody::default() } else { body(&bytes)? };
    let drain_ms = drain_ms.unwrap_or(DEFAULT_DRAIN_MS);
    let ending = Ending { id, drain_ms, lease: lease(lease_s, Lease::CLOSED)? };
    Ok(Json(ask(&state, |reply| Command::Close(ending, reply)).await??))
}

pub(super) async fn observations(
    Shared(state): Shared<State>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    Ok(joined(&ask(&state, |reply| Command::Observations(id, reply)).await??))
}

fn joined(rows: &[Arc<str>]) -> Response {
    let mut text = String::with_capacity(rows.iter().map(|row| row.len() + 1).sum());
    for row in rows {
        text.push_str(row);
        text.push('\n');
    }
    lines(text)
}

pub(super) async fn prefixes(
    Shared(state): Shared<State>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    Ok(joined(&ask(&state, |reply| Command::Prefixes(id, reply)).await??))
}

pub(super) async fn inflight(
    Shared(state): Shared<State>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let rows = ask(&state, |reply| Command::Inflight(id, reply)).await??;
    let mut text = String::new();
    for row in rows {
        // Numbers and names: nothing in a row can fail to be written.
        text.push_str(&serde_json::to_string(&row).unwrap_or_default());
        text.push('\n');
    }
    Ok(lines(text))
}

pub(super) async fn concentration(
    Shared(state): Shared<State>,
    Path(id): Path<String>,
) -> Result<Json<Concentration>, ApiError> {
    Ok(Json(ask(&state, |reply| Command::Concentration(id, reply)).await??))
}

pub(super) async fn delete(
    Shared(state): Shared<State>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    ask(&state, |reply| Command::Delete(id, reply)).await??;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn gauges(Shared(state): Shared<State>) -> Result<Json<GaugesBody>, ApiError> {
    let gauges = ask(&state, Command::Gauges).await?;
    Ok(Json(GaugesBody {
        schema: GAUGES_SCHEMA,
        at_ns: gauges.at,
        endpoints: gauges.endpoints,
        concentration: gauges.concentration,
    }))
}

pub(super) async fn evidence(Shared(state): Shared<State>) -> Result<Json<Evidence>, ApiError> {
    let collector = Arc::clone(&state.about.evidence);
    let read = tokio::task::spawn_blocking(move || collector.read()).await;
    Ok(Json(read.map_err(|_| ApiError::Window(WindowError::Stopping))?))
}

fn unix_seconds() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

pub(super) async fn metrics(Shared(state): Shared<State>) -> Result<Response, ApiError> {
    let tick = ask(&state, Command::Metrics).await?;
    let [reloads_applied, reloads_refused, api_refused] = state.access.counts();
    let process = Process {
        started_unix_s: state.about.started_unix_s,
        tick_unix_s: unix_seconds(),
        ring_bytes: state.about.ring_bytes,
        reloads_applied,
        reloads_refused,
        api_refused,
        discovery: state.about.discovery.as_ref().map(|it| it.counts()),
        source: state.about.source,
        kernel: state.about.kernel.clone(),
    };
    // Writing to a string cannot fail.
    let text = metrics::openmetrics(*tick, process).unwrap_or_default();
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
}

pub(super) async fn unknown_path() -> ApiError {
    ApiError::UnknownPath
}

pub(super) async fn wrong_method() -> ApiError {
    ApiError::WrongMethod
}
