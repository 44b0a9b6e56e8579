//! The manifest: hashes of everything that is decided, taken before the first measured send.

use std::collections::BTreeMap;

use super::RunError;
use super::prepare::{Existing, Prepared};
use crate::evidence::HealthFile;
use crate::records::{ScheduleRecord, Versioned as _, schedule_sha256, sha256_hex};
use crate::rundir::{Manifest, Override, read_json};

/// Schedules of every repetition up to the cap: later repetitions are pre-registered too.
pub(super) fn manifest(prepared: &Prepared, health: &HealthFile) -> Result<Manifest, RunError> {
    let keys = prepared.campaign.keys();
    let mut schedules = BTreeMap::new();
    for rate in prepared.campaign.rates() {
        for repetition in 1..=keys.load.max_repetitions {
            let schedule = prepared.schedule("any", rate, repetition, None)?;
            let records = schedule.requests().iter().map(ScheduleRecord::from);
            schedules.insert(format!("r{rate}/rep{repetition}"), schedule_sha256(records)?);
        }
    }
    Ok(Manifest {
        schema: Manifest::SCHEMA.to_owned(),
        name: keys.name.clone(),
        campaign_path: prepared.campaign.path().display().to_string(),
        campaign_sha256: sha256_hex(prepared.campaign.bytes()),
        trace_source_sha256: sha256_hex(&prepared.trace_source),
        trace_sha256: sha256_hex(&prepared.trace_lines),
        trace_origin: prepared.trace_origin.clone(),
        schedules,
        fleet_fingerprint: fingerprint(prepared, health)?,
        goodput_version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: kernel_release(),
        without_agent: prepared.options.without_agent,
        overrides: overrides(prepared)?,
    })
}

/// A run that is continued keeps what it was begun with: finishing it is no departure of its own, and what was
/// begun with less stays on record.
fn overrides(prepared: &Prepared) -> Result<Vec<Override>, RunError> {
    let (options, keys) = (&prepared.options, prepared.campaign.keys());
    let path = prepared.dir.file("manifest.json");
    if options.existing == Existing::Resume && path.exists() {
        return Ok(read_json::<Manifest>(&path)?.overrides);
    }
    let registered = keys.load.repetitions;
    let repetitions = options.repetitions.filter(|asked| *asked < registered);
    let probe = options.probe_seconds.filter(|asked| *asked < keys.probe.seconds);
    let agents = keys.agent.len() as u64;
    let found = [
        repetitions.map(|asked| Override::Repetitions { asked, registered }),
        probe.map(|asked| Override::ProbeSeconds { asked, registered: keys.probe.seconds }),
        (options.without_agent && agents > 0).then_some(Override::WithoutAgent { agents }),
    ];
    Ok(found.into_iter().flatten().collect())
}

/// What must not change between phases: who serves what where.
fn fingerprint(prepared: &Prepared, health: &HealthFile) -> Result<String, RunError> {
    let arms: Vec<_> = prepared.arms.iter().map(|arm| (&arm.keys.name, &arm.keys.vip)).collect();
    let backends: Vec<_> = health
        .backends
        .iter()
        .map(|backend| (&backend.address, &backend.models, backend.max_model_len))
        .collect();
    Ok(sha256_hex(&serde_json::to_vec(&(arms, backends))?))
}

fn kernel_release() -> String {
    nix::sys::utsname::uname()
        .map(|name| name.release().to_string_lossy().into_owned())
        .unwrap_or_else(|_| "unknown".to_owned())
}
