//! `goodput slo derive`: the unloaded baseline on the scored path, and the SLO as a multiple of it.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::RunError;
use super::baseline::{Wanted, measure};
use super::prepare::{Prepared, RunOptions};
use super::reporter::Reporter;
use crate::campaign::{BaselineMultiple, Campaign};
use crate::clock::SystemClock;
use crate::input::read_regular;
use crate::records::{RequestRecord, Versioned as _, sha256_hex};
use crate::rundir::{DerivedOrigin, DerivedSlo, SloFile, SloOrigin, write_json};
use crate::slo::{SloError, multiple_of};

/// What the command line says.
#[derive(Clone, Debug, PartialEq)]
pub struct DeriveOptions {
    /// SLO / baseline of TTFT, instead of the campaign's.
    pub ttft_multiple: Option<f64>,
    /// SLO / baseline of TPOT, instead of the campaign's.
    pub tpot_multiple: Option<f64>,
    /// Requests, instead of the campaign's.
    pub requests: Option<u64>,
    /// Requests sent before them and left out.
    pub warmup: u64,
    /// The file to write; it must not exist.
    pub out: PathBuf,
}

/// What was derived.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    /// The file's content.
    pub slo: DerivedSlo,
    /// SHA-256 of the file, for the campaign.
    pub sha256: String,
}

/// The definition asks for at least as many.
const LEAST_REQUESTS: u64 = 100;

/// Measures the baseline through the floor arm and writes the SLO with its origin; the records lie beside it.
///
/// # Errors
/// [`RunError`]; no file of the SLO is left then.
pub fn derive_slo(
    campaign: &Path,
    options: &DeriveOptions,
    stop: &AtomicBool,
    reporter: &mut dyn Reporter,
) -> Result<Derived, RunError> {
    let prepared = Prepared::new(Campaign::load(campaign)?, RunOptions::anywhere())?;
    let multiple = multiples(&prepared.campaign, options)?;
    let records = options.out.with_extension("requests.jsonl");
    if let Some(path) = [&options.out, &records].into_iter().find(|path| path.exists()) {
        return Err(RunError::SloExists { path: path.clone() });
    }
    let derived = derive_into(&prepared, options, &multiple, &records, (stop, reporter));
    if derived.is_err() && records.exists() {
        std::fs::remove_file(&records).map_err(RunError::io(&records))?;
    }
    derived
}

fn derive_into(
    prepared: &Prepared,
    options: &DeriveOptions,
    multiple: &BaselineMultiple,
    path: &Path,
    (stop, reporter): (&AtomicBool, &mut dyn Reporter),
) -> Result<Derived, RunError> {
    let floor = &prepared.floor().keys;
    let unreachable = |source| {
        let (vip, arm) = (&floor.vip, &floor.name);
        RunError::Unhealthy(format!("unreachable VIP {vip} of arm {arm}: {source}"))
    };
    prepared.floor().target.check().map_err(unreachable)?;
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let started = Instant::now();
    let wanted = Wanted { requests: multiple.requests, warmup: options.warmup, records: path };
    let records = measure(prepared, &wanted, &SystemClock, stop, reporter)?;
    let took = started.elapsed();
    let largest = prepared.trace.largest_output();
    let slo = multiple_of(&prepared.campaign, largest, multiple, &records)?;
    let bytes = read_regular(path).map_err(RunError::io(path))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let origin = DerivedOrigin {
        warmup: options.warmup,
        began_unix_ms: u64::try_from(began.as_millis()).unwrap_or(u64::MAX),
        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        records: name,
        records_sha256: sha256_hex(&bytes),
        ..origin(prepared, multiple, &slo, &records)
    };
    let slo = DerivedSlo {
        schema: DerivedSlo::SCHEMA.to_owned(),
        ttft_ns: slo.ttft_ns,
        tpot_ns: slo.tpot_ns,
        origin,
    };
    write_json(&options.out, &slo)?;
    let bytes = read_regular(&options.out).map_err(RunError::io(&options.out))?;
    Ok(Derived { slo, sha256: sha256_hex(&bytes) })
}

/// What the campaign and the measurement say; when and how long is the caller's.
fn origin(
    prepared: &Prepared,
    multiple: &BaselineMultiple,
    slo: &SloFile,
    records: &[RequestRecord],
) -> DerivedOrigin {
    let (ttft, tpot, over) = match &slo.origin {
        SloOrigin::MultipleOfBaseline {
            baseline_ttft_ns,
            baseline_tpot_ns,
            unloaded_share_over_slo,
            ..
        } => (*baseline_ttft_ns, *baseline_tpot_ns, *unloaded_share_over_slo),
        SloOrigin::Fixed { .. } => (0, 0, 0.0),
    };
    let (keys, floor) = (prepared.campaign.keys(), prepared.campaign.floor());
    DerivedOrigin {
        arm: floor.name.clone(),
        vip: floor.vip.clone(),
        model: keys.request.model.clone(),
        api: keys.request.api,
        trace_sha256: sha256_hex(&prepared.trace_lines),
        requests: records.len() as u64,
        warmup: 0,
        quantile: "p50, type 1".to_owned(),
        baseline_ttft_ns: ttft,
        baseline_tpot_ns: tpot,
        ttft_multiple: multiple.ttft_multiple,
        tpot_multiple: multiple.tpot_multiple,
        unloaded_share_over_slo: over,
        began_unix_ms: 0,
        took_ms: 0,
        records: String::new(),
        records_sha256: String::new(),
        goodput_version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// The command line before the campaign; one of them must name each.
fn multiples(campaign: &Campaign, options: &DeriveOptions) -> Result<BaselineMultiple, RunError> {
    let registered = campaign.keys().slo.multiple_of_baseline.as_ref();
    let needed = |asked: Option<f64>, key: Option<f64>, option: &str| {
        asked.or(key).filter(|value| value.is_finite() && *value > 0.0).ok_or_else(|| {
            let text =
                format!("no positive multiple; add {option} N, or multiple_of_baseline to [slo]");
            RunError::from(SloError::Baseline(text))
        })
    };
    let requests = options.requests.or(registered.map(|it| it.requests)).unwrap_or(LEAST_REQUESTS);
    if requests < LEAST_REQUESTS {
        let text = format!("a baseline of {requests} requests; use at least {LEAST_REQUESTS}");
        return Err(SloError::Baseline(text).into());
    }
    Ok(BaselineMultiple {
        ttft_multiple: needed(
            options.ttft_multiple,
            registered.map(|it| it.ttft_multiple),
            "--ttft-multiple",
        )?,
        tpot_multiple: needed(
            options.tpot_multiple,
            registered.map(|it| it.tpot_multiple),
            "--tpot-multiple",
        )?,
        requests,
    })
}
