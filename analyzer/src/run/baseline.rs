//! The SLO: a multiple of the unloaded baseline through the floor arm, or as given.

use std::sync::atomic::{AtomicBool, Ordering};

use super::RunError;
use super::prepare::Prepared;
use super::reporter::{Reporter, Step};
use crate::campaign::BaselineMultiple;
use crate::clock::Clock;
use crate::prompt::{Salt, body};
use crate::records::{LineWriter, RequestRecord, read_lines};
use crate::replay::{Client, RequestLimits};
use crate::rundir::SloFile;
use crate::slo;

/// Deadline of a baseline request: nothing else is in the system.
const DEADLINE_NS: u64 = 120_000_000_000;
const ARM: &str = "baseline";

/// Gives the SLO, measuring it when the campaign says so.
pub(super) fn slo(
    prepared: &Prepared,
    clock: &dyn Clock,
    stop: &AtomicBool,
    reporter: &mut dyn Reporter,
) -> Result<SloFile, RunError> {
    let multiple = &prepared.campaign.keys().slo.multiple_of_baseline;
    let records = match multiple {
        Some(multiple) => Some(measure(prepared, multiple, clock, stop, reporter)?),
        None => None,
    };
    let largest = prepared.trace.largest_output();
    Ok(slo::derive(&prepared.campaign, largest, records.as_deref())?)
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
            return Err(prepared.interrupted());
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

/// The SLO of a run that is continued, after deriving it again: cells measured against one SLO are not
/// added to under another.
pub(super) fn confirmed(prepared: &Prepared, recorded: SloFile) -> Result<SloFile, RunError> {
    let path = prepared.dir.file(ARM).join("requests.jsonl");
    let records: Option<Vec<RequestRecord>> = match path.exists() {
        true => Some(read_lines(&path)?.records),
        false => None,
    };
    let largest = prepared.trace.largest_output();
    match slo::derive(&prepared.campaign, largest, records.as_deref()) {
        Ok(derived) if derived.same_bounds(&recorded) => Ok(recorded),
        _ => Err(RunError::ResumeDiffers {
            path: prepared.dir.root().to_owned(),
            what: vec!["slo.json, or the baseline that it follows from"],
        }),
    }
}
