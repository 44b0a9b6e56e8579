//! Phase 0: real end-to-end requests before anything is measured, and readiness while it is.

mod readiness;

pub use readiness::{Readiness, ReadinessError, ReadinessTarget};

use std::sync::atomic::AtomicBool;

use protocol::TraceId;
use serde_json::Value;

use crate::clock::Clock;
use crate::control::{Call, Control};
use crate::evidence::{BackendHealth, HealthFile, VipHealth};
use crate::prompt::{BodyOptions, short_chat};
use crate::records::Versioned as _;
use crate::replay::{BearerToken, Client, ReplayError, RequestLimits, Target};

/// A health check must not hang on a dead service.
const DEADLINE_NS: u64 = 30_000_000_000;
const PROMPT: &str = "readiness check of goodput";

/// One VIP to check.
#[derive(Clone, Copy, Debug)]
pub struct Vip<'a> {
    /// Name of the arm.
    pub arm: &'a str,
    /// Base URL.
    pub url: &'a str,
    /// Resolved.
    pub target: &'a Target,
    /// Correlation of the one request.
    pub trace_id: TraceId,
}

/// Sends one streamed completion through every VIP and lists the models of every backend.
///
/// # Errors
/// [`ReplayError`] when the event loop fails; what the services answer is in the file.
pub fn check(
    control: &Control,
    clock: &dyn Clock,
    vips: &[Vip<'_>],
    backends: &[String],
    options: &BodyOptions,
    bearer: Option<&BearerToken>,
) -> Result<HealthFile, ReplayError> {
    let mut checked = Vec::new();
    for vip in vips {
        checked.push(check_vip(clock, vip, options, bearer)?);
    }
    let backends: Vec<BackendHealth> =
        backends.iter().map(|address| check_backend(control, address)).collect();
    Ok(HealthFile {
        schema: HealthFile::SCHEMA.to_owned(),
        ok: checked.iter().all(|vip| vip.ok) && backends.iter().all(|backend| backend.ok),
        vips: checked,
        backends,
    })
}

fn check_vip(
    clock: &dyn Clock,
    vip: &Vip<'_>,
    options: &BodyOptions,
    bearer: Option<&BearerToken>,
) -> Result<VipHealth, ReplayError> {
    let limits = RequestLimits::with_deadline_ns(DEADLINE_NS);
    let client = Client::new(vip.target, bearer, limits, clock);
    let body = short_chat(PROMPT, 2, options)?;
    let record = client.one(0, vip.trace_id, &body, &AtomicBool::new(false))?;
    Ok(VipHealth {
        arm: vip.arm.to_owned(),
        vip: vip.url.to_owned(),
        ok: record.class.is_delivered(),
        status: record.status,
        class: record.class.name().to_owned(),
        detail: hint(record.status, record.detail, options),
    })
}

/// What usually makes a VIP refuse a request that is well formed.
fn hint(status: Option<u16>, detail: String, options: &BodyOptions) -> String {
    match status {
        Some(404) => format!(
            "{detail}; is `[request] model = \"{}\"` one of the models that the backends list?",
            options.model
        ),
        Some(401 | 403) => format!("{detail}; name the service's token in `[request] token_file`"),
        _ => detail,
    }
}

fn check_backend(control: &Control, address: &str) -> BackendHealth {
    let mut health = BackendHealth {
        address: address.to_owned(),
        ok: false,
        models: Vec::new(),
        max_model_len: None,
        detail: String::new(),
    };
    match control.json(&Call::get(format!("http://{address}/v1/models"))) {
        Err(error) => health.detail = error.to_string(),
        Ok(list) => {
            let models: Vec<&Value> = list["data"].as_array().into_iter().flatten().collect();
            health.models =
                models.iter().filter_map(|model| Some(model["id"].as_str()?.to_owned())).collect();
            health.max_model_len =
                models.iter().filter_map(|model| model["max_model_len"].as_u64()).max();
            health.ok = !health.models.is_empty();
            if !health.ok {
                "the model list is empty".clone_into(&mut health.detail);
            }
        }
    }
    health
}
