//! The SLO: a multiple of the unloaded baseline through the floor arm, or as given.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::RunError;
use super::prepare::Prepared;
use super::reporter::{Reporter, Step};
use crate::clock::Clock;
use crate::evidence::derived_slo;
use crate::prompt::{Salt, body};
use crate::records::{LineWriter, RequestRecord, read_lines, sha256_hex};
use crate::replay::{Client, RequestLimits};
use crate::rundir::{DerivedSlo, ReadDerivedSlo, SloFile, read_json};
use crate::slo::{self, SloError};

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
    let keys = &prepared.campaign.keys().slo;
    let largest = prepared.trace.largest_output();
    let campaign = &prepared.campaign;
    let path = prepared.dir.baseline("requests.jsonl");
    if let Some(multiple) = &keys.multiple_of_baseline {
        create_parent(&path)?;
        let wanted = Wanted { requests: multiple.requests, warmup: 0, records: &path };
        let records = measure(prepared, &wanted, clock, stop, reporter)?;
        return Ok(slo::derive(campaign, largest, Some(&records), None)?);
    }
    let Some(derived) = &keys.derived else {
        return Ok(slo::derive(campaign, largest, None, None)?);
    };
    let file = campaign.resolve(&derived.file);
    let (read, records) = registered(prepared, &file)?;
    create_parent(&path)?;
    for (from, to) in [(&file, prepared.dir.baseline("derived.json")), (&records, path)] {
        std::fs::copy(from, &to).map_err(RunError::io(from))?;
    }
    let records: Vec<RequestRecord> = read_lines(&records)?.records;
    Ok(slo::derive(campaign, largest, Some(&records), Some(&read))?)
}

/// The file that the campaign names, and where its records lie; both must be of the path that is scored.
fn registered(prepared: &Prepared, file: &Path) -> Result<(ReadDerivedSlo, PathBuf), RunError> {
    let slo: DerivedSlo = read_json(file)?;
    let records = file.with_file_name(&slo.origin.records);
    let read = derived_slo(file, &records)?;
    let scored = sha256_hex(&prepared.trace_lines);
    if slo.origin.trace_sha256 == scored {
        return Ok((read, records));
    }
    let measured = &slo.origin.trace_sha256;
    let why = format!("{}: derived on trace {measured}, the run replays {scored}", file.display());
    Err(SloError::Origin(why).into())
}

fn create_parent(path: &Path) -> Result<(), RunError> {
    let Some(dir) = path.parent() else { return Ok(()) };
    std::fs::create_dir_all(dir).map_err(RunError::io(dir))
}

/// What is measured and where its records go.
pub(super) struct Wanted<'a> {
    pub(super) requests: u64,
    /// Sent before and left out.
    pub(super) warmup: u64,
    /// A file that does not exist yet.
    pub(super) records: &'a Path,
}

/// One at a time and cold: every request has a salt of its own, so no cache can help it.
pub(super) fn measure(
    prepared: &Prepared,
    wanted: &Wanted<'_>,
    clock: &dyn Clock,
    stop: &AtomicBool,
    reporter: &mut dyn Reporter,
) -> Result<Vec<RequestRecord>, RunError> {
    let rows = prepared.trace.rows();
    let ids = prepared.schedule(ARM, 1.0, 0, None)?;
    let mut writer = LineWriter::create(wanted.records)?;
    let limits = RequestLimits::with_deadline_ns(DEADLINE_NS);
    let floor = prepared.floor();
    let client = Client::new(&floor.target, prepared.bearer.as_ref(), limits, clock);
    let label = "SLO baseline, one request at a time".to_owned();
    let step = Step { label, number: 1, of: 1, seconds_left: 0.0 };
    let mut sink = reporter.step(&step, wanted.requests);
    let mut records = Vec::new();
    for index in 0..wanted.warmup + wanted.requests {
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
        let number = index.saturating_sub(wanted.warmup);
        let record = client.one(number, ids.requests()[place].trace_id, &request, stop)?;
        if index < wanted.warmup {
            continue;
        }
        writer.append(&record)?;
        sink.ended(&record);
        records.push(record);
    }
    writer.sync()?;
    Ok(records)
}

/// The SLO of a run that is continued, after deriving it again: cells measured against one SLO are not
/// added to under another.
pub(super) fn confirmed(prepared: &Prepared, recorded: SloFile) -> Result<SloFile, RunError> {
    let path = prepared.dir.baseline("requests.jsonl");
    let records: Option<Vec<RequestRecord>> = match path.exists() {
        true => Some(read_lines(&path)?.records),
        false => None,
    };
    let file = prepared.dir.baseline("derived.json");
    let derived = match file.exists() && path.exists() {
        true => Some(derived_slo(&file, &path)?),
        false => None,
    };
    let largest = prepared.trace.largest_output();
    match slo::derive(&prepared.campaign, largest, records.as_deref(), derived.as_ref()) {
        Ok(derived) if derived.same_bounds(&recorded) => Ok(recorded),
        _ => Err(RunError::ResumeDiffers {
            path: prepared.dir.root().to_owned(),
            what: vec!["slo.json, or the baseline that it follows from"],
        }),
    }
}
