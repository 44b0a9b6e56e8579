//! Calls about the legs of a window's requests. Pairing happens here, beside the worker.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State as Shared};
use axum::response::Response;
use serde::Deserialize;

use super::State;
use super::error::ApiError;
use super::handlers::{ask, lines};
use crate::legs::{self, Delivery, LegRow, Pairing, Scope};
use crate::window::WindowError;
use crate::worker::{Command, WindowLegs};

/// A first token that takes longer is slow, in milliseconds, when nothing else is asked.
const DEFAULT_SLOW_MS: u32 = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Slow {
    #[serde(default = "default_slow")]
    slow_ms: u32,
}

fn default_slow() -> u32 {
    DEFAULT_SLOW_MS
}

/// Pairs the legs of window `id`, then lets `report` write of them.
async fn paired<T: Send + 'static>(
    state: &State,
    id: String,
    report: impl FnOnce(&Pairing, &WindowLegs) -> T + Send + 'static,
) -> Result<T, ApiError> {
    let legs = ask(state, |reply| Command::Legs(id, reply)).await??;
    let work = move || report(&pairing(&legs), &legs);
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| ApiError::Window(WindowError::Stopping))
}

fn pairing(legs: &WindowLegs) -> Pairing {
    let read = |row: &std::sync::Arc<str>| {
        serde_json::from_str::<LegRow>(row)
            .inspect_err(|error| tracing::error!(%error, "an observation can't be read again"))
            .ok()
    };
    legs::pair(legs.rows.iter().filter_map(read))
}

fn scope(legs: &WindowLegs, slow_ms: u32) -> Scope<'_> {
    let slow_ns = i64::from(slow_ms) * 1_000_000;
    Scope { endpoints: &legs.endpoints, complete: legs.complete, slow_ns }
}

pub(super) async fn rows(
    Shared(state): Shared<State>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let write = |pairing: &Pairing, legs: &WindowLegs| {
        let mut text = String::new();
        for row in legs::rows(pairing, &scope(legs, DEFAULT_SLOW_MS)) {
            // Numbers and names: nothing in a row can fail to be written.
            text.push_str(&serde_json::to_string(&row).unwrap_or_default());
            text.push('\n');
        }
        text
    };
    Ok(lines(paired(&state, id, write).await?))
}

pub(super) async fn delivery(
    Shared(state): Shared<State>,
    Path(id): Path<String>,
    slow: Result<Query<Slow>, QueryRejection>,
) -> Result<Json<Delivery>, ApiError> {
    let Query(slow) = slow.map_err(|error| ApiError::BadQuery(error.body_text()))?;
    let name = id.clone();
    let count = move |pairing: &Pairing, legs: &WindowLegs| {
        legs::delivery(name, pairing, &scope(legs, slow.slow_ms))
    };
    Ok(Json(paired(&state, id, count).await?))
}
