//! The SLO: a multiple of the unloaded baseline through the floor arm, or as given.

use std::sync::atomic::{AtomicBool, Ordering};

use super::RunError;
use super::prepare::Prepared;
use super::reporter::{Reporter, Step};
use crate::campaign::{BaselineMultiple, FixedSlo};
use crate::clock::Clock;
use crate::prompt::{Salt, body};
use crate::records::{LineWriter, RequestRecord, Versioned as _};
use crate::replay::{Client, RequestLimits};
use crate::rundir::{SloFile, SloOrigin};
use crate::stats::quantile_type1;

/// Deadline of a baseline request: nothing else is in the system.
const DEADLINE_NS: u64 = 120_000_000_000;
/// A computed deadline leaves this much above the slowest good request.
const DEADLINE_SLACK: f64 = 2.0;
const ARM: &str = "baseline";

/// Gives the SLO, measuring it when the campaign says so.
pub(super) fn slo(
    prepared: &Prepared,
    clock: &dyn Clock,
    stop: &AtomicBool,
    reporter: &mut dyn Reporter,
) -> Result<SloFile, RunError> {
    let keys = &prepared.campaign.keys().slo;
    match (&keys.multiple_of_baseline, &keys.fixed) {
        (Some(multiple), _) => {
            let records = measure(prepared, multiple, clock, stop, reporter)?;
            derive(prepared, multiple, &records)
        }
        (None, Some(fixed)) => given(prepared, fixed),
        (None, None) => {
            Err(RunError::Baseline("the campaign names no origin of the SLO".to_owned()))
        }
    }
}

/// One at a time and cold: every request has a salt of its own, so no cache can help it.
fn measure(
    prepared: &Prepared,
    multiple: &BaselineMultiple,
    clock: &dyn Clock,
    stop: &AtomicBool,
    reporter: &mut dyn Reporter,
) -> Result<Vec<RequestRecord>, RunError> {
    let rows = prepared.trace.rows();
    let ids = prepared.schedule(ARM, 1.0, 0, None)?;
    let dir = prepared.dir.file(ARM);
    std::fs::create_dir_all(&dir).map_err(RunError::io(&dir))?;
    let mut writer = LineWriter::create(&dir.join("requests.jsonl"))?;
    let limits = RequestLimits::with_deadline_ns(DEADLINE_NS);
    let floor = prepared.floor();
    let client = Client::new(&floor.target, prepared.bearer.as_ref(), limits, clock);
    let label = "SLO baseline, one request at a time".to_owned();
    let step = Step { label, number: 1, of: 1, seconds_left: 0.0 };
    let mut sink = reporter.step(&step, multiple.requests);
    let mut records = Vec::new();
    for index in 0..multiple.requests {
        if stop.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        let place = usize::try_from(index).unwrap_or(0) % rows.len();
        let salt = Salt::derive(
            prepared.campaign.keys().seed,
            ARM,
            0.0,
            u32::try_from(index).unwrap_or(0),
        );
        let request = body(&rows[place], Some(salt), &prepared.body)?;
        let record = client.one(index, ids.requests()[place].trace_id, &request, stop)?;
        writer.append(&record)?;
        sink.ended(&record);
        records.push(record);
    }
    Ok(records)
}

fn derive(
    prepared: &Prepared,
    multiple: &BaselineMultiple,
    records: &[RequestRecord],
) -> Result<SloFile, RunError> {
    if let Some(bad) = records.iter().find(|record| !record.class.is_delivered()) {
        let (index, class, detail) = (bad.index, bad.class.name(), &bad.detail);
        let text = format!(
            "unloaded request {index} through the floor arm ended as {class} ({detail}); mend the path first"
        );
        return Err(RunError::Baseline(text));
    }
    let sorted = |value: &dyn Fn(&RequestRecord) -> Option<u64>| {
        let mut values: Vec<u64> = records.iter().filter_map(value).collect();
        values.sort_unstable();
        values
    };
    let ttft = sorted(&|record| record.ttft_ns.and_then(|ns| u64::try_from(ns).ok()));
    let tpot = sorted(&|record| record.tpot_ns);
    let (Some(baseline_ttft_ns), Some(baseline_tpot_ns)) =
        (quantile_type1(&ttft, 0.5), quantile_type1(&tpot, 0.5))
    else {
        let text = "no request has both TTFT and TPOT; use a trace with more than one output token";
        return Err(RunError::Baseline(text.to_owned()));
    };
    let ttft_ns = scaled(baseline_ttft_ns, multiple.ttft_multiple);
    let tpot_ns = scaled(baseline_tpot_ns, multiple.tpot_multiple);
    let over = ttft.iter().filter(|ns| **ns > ttft_ns).count() as f64 / records.len() as f64;
    let target = prepared.campaign.keys().slo.target;
    if over > 1.0 - target {
        return Err(RunError::Baseline(format!(
            "{:.1} % of the unloaded requests already exceed the TTFT SLO, so {:.0} % good is out of reach; raise ttft_multiple",
            over * 100.0,
            target * 100.0
        )));
    }
    let origin = SloOrigin::MultipleOfBaseline {
        arm: prepared.floor().keys.name.clone(),
        requests: records.len() as u64,
        baseline_ttft_ns,
        baseline_tpot_ns,
        ttft_multiple: multiple.ttft_multiple,
        tpot_multiple: multiple.tpot_multiple,
        unloaded_share_over_slo: over,
    };
    file(prepared, ttft_ns, tpot_ns, origin)
}

fn given(prepared: &Prepared, fixed: &FixedSlo) -> Result<SloFile, RunError> {
    let (ttft_ns, tpot_ns) = (scaled(1_000_000, fixed.ttft_ms), scaled(1_000_000, fixed.tpot_ms));
    file(prepared, ttft_ns, tpot_ns, SloOrigin::Fixed { origin: fixed.origin.clone() })
}

fn file(
    prepared: &Prepared,
    ttft_ns: u64,
    tpot_ns: u64,
    origin: SloOrigin,
) -> Result<SloFile, RunError> {
    let largest = prepared.trace.largest_output();
    let least = ttft_ns.saturating_add(tpot_ns.saturating_mul(largest.saturating_sub(1)));
    let deadline_ns = match prepared.campaign.keys().slo.deadline_ms {
        None => scaled(least, DEADLINE_SLACK),
        Some(ms) if scaled(1_000_000, ms) >= least => scaled(1_000_000, ms),
        Some(given_ms) => {
            return Err(RunError::Deadline { given_ms, least_ms: least as f64 / 1e6 });
        }
    };
    Ok(SloFile { schema: SloFile::SCHEMA.to_owned(), ttft_ns, tpot_ns, deadline_ns, origin })
}

/// `ns` times a positive factor, rounded; a product beyond 64 bits saturates.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "both factors are positive and the cast saturates"
)]
fn scaled(ns: u64, factor: f64) -> u64 {
    (ns as f64 * factor).round() as u64
}
