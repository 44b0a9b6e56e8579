//! Reading a run directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::{CellPlace, Evidence, Repetition, largest_output};
use crate::campaign::{Campaign, CampaignError};
use crate::input::read_regular;
use crate::join::Observed;
use crate::records::{RecordError, RequestRecord, RunRecord, Versioned, read_lines, sha256_hex};
use crate::rundir::{
    ImportFile, JsonError, ReadDerivedSlo, ReadinessRow, RunDir, SloFile, from_json, read_json,
    read_optional,
};
use crate::slo;

/// Why a run directory could not be read.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The campaign in it is bad.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// A JSON file is absent or bad.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A record file is absent or bad.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// There is no run.
    #[error("{path}: {problem}; name the directory that `goodput run` wrote (run_dir in the campaign, or --run-dir)", path = path.display())]
    NoRun {
        /// What was named.
        path: PathBuf,
        /// Why it is none.
        problem: &'static str,
    },
    /// The SLO names no origin.
    #[error("SLO_WITHOUT_ORIGIN: {path}: the bounds name no origin; restore the file that the run wrote, or measure an SLO with `goodput slo derive` and run the campaign anew", path = path.display())]
    SloWithoutOrigin {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be read.
    #[error("{path}: {source}; run `goodput run` to produce it, or name another run directory", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Reads everything of a run.
///
/// # Errors
/// [`EvidenceError`] naming the file that is absent or bad.
pub fn load(dir: &RunDir) -> Result<Evidence, EvidenceError> {
    is_run(dir)?;
    let campaign = Campaign::load(&dir.file("campaign.toml"))?;
    let trace = dir.file("trace.jsonl");
    let trace =
        std::fs::read(&trace).map_err(|source| EvidenceError::Io { path: trace, source })?;
    let mut probes = BTreeMap::new();
    for arm in &campaign.keys().arm {
        if let Some(probe) = read_optional(&dir.probe(&arm.name))? {
            probes.insert(arm.name.clone(), probe);
        }
    }
    let repetitions = repetitions(dir, &campaign)?;
    let records = dir.baseline("requests.jsonl");
    let baseline: Option<Vec<RequestRecord>> = optional_lines(&records)?;
    let derived_path = dir.baseline("derived.json");
    let derived = match derived_path.exists() && records.exists() {
        true => Some(derived_slo(&derived_path, &records)?),
        false => None,
    };
    names_its_origin(&dir.file("slo.json"))?;
    let recorded = read_optional(&dir.file("slo.json"))?;
    Ok(Evidence {
        manifest: read_json(&dir.file("manifest.json"))?,
        trace_sha256: sha256_hex(&trace),
        slo_recorded: recorded.is_some(),
        slo: slo_or_derived(
            dir,
            recorded,
            &campaign,
            (baseline.as_deref(), derived.as_ref()),
            &repetitions,
        )?,
        baseline,
        derived,
        health: read_optional(&dir.file("health.json"))?,
        probes,
        import: match campaign.keys().imported {
            Some(_) => Some(read_json(&dir.file(ImportFile::NAME))?),
            None => None,
        },
        readiness: optional_lines::<ReadinessRow>(&dir.file("health.jsonl"))?,
        repetitions,
        campaign,
    })
}

fn is_run(dir: &RunDir) -> Result<(), EvidenceError> {
    let root = dir.root();
    let problem = match (root.is_dir(), dir.file("manifest.json").exists()) {
        (true, true) => return Ok(()),
        (true, false) => "not a run directory: it holds no manifest.json",
        (false, _) if root.exists() => "not a directory",
        (false, _) => "no such directory",
    };
    Err(EvidenceError::NoRun { path: root.to_owned(), problem })
}

/// Without `slo.json` the bounds are derived anew, so that what is missing can be reported with its
/// code; where they cannot be derived either there is nothing to judge by.
fn slo_or_derived(
    dir: &RunDir,
    recorded: Option<SloFile>,
    campaign: &Campaign,
    (baseline, file): (Option<&[RequestRecord]>, Option<&ReadDerivedSlo>),
    repetitions: &[Repetition],
) -> Result<SloFile, EvidenceError> {
    let derived = || slo::derive(campaign, largest_output(repetitions)?, baseline, file).ok();
    match recorded.or_else(derived) {
        Some(slo) => Ok(slo),
        None => Ok(read_json(&dir.file("slo.json"))?),
    }
}

/// Reads the repetitions on all processors, in the campaign's order; of several faults the first in that order is
/// told.
fn repetitions(dir: &RunDir, campaign: &Campaign) -> Result<Vec<Repetition>, EvidenceError> {
    let mut places = Vec::new();
    for arm in &campaign.keys().arm {
        for rate_rps in campaign.rates() {
            let recorded = dir.recorded(&arm.name, rate_rps).into_iter();
            let place = |repetition| CellPlace { arm: arm.name.clone(), rate_rps, repetition };
            places.extend(recorded.map(place));
        }
    }
    let read: Vec<Result<Repetition, EvidenceError>> =
        places.into_par_iter().map(|place| repetition(dir, place, campaign)).collect();
    read.into_iter().collect()
}

/// The file of a derived SLO, with the hashes of it and of its records.
pub(crate) fn derived_slo(path: &Path, records: &Path) -> Result<ReadDerivedSlo, EvidenceError> {
    let read = |path: &Path| {
        read_regular(path).map_err(|source| EvidenceError::Io { path: path.to_owned(), source })
    };
    let bytes = read(path)?;
    Ok(ReadDerivedSlo {
        slo: from_json(&bytes, path)?,
        sha256: sha256_hex(&bytes),
        records_sha256: sha256_hex(&read(records)?),
    })
}

/// Bounds that come from nowhere judge nothing.
fn names_its_origin(path: &Path) -> Result<(), EvidenceError> {
    let Ok(bytes) = read_regular(path) else { return Ok(()) };
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(&bytes) else { return Ok(()) };
    let named = match (&value["origin"], value["origin"]["kind"].as_str()) {
        (serde_json::Value::Object(_), Some("fixed")) => {
            value["origin"]["origin"].as_str().is_some_and(|text| !text.trim().is_empty())
        }
        (origin, _) => origin.is_object(),
    };
    if named { Ok(()) } else { Err(EvidenceError::SloWithoutOrigin { path: path.to_owned() }) }
}

fn repetition(
    run_dir: &RunDir,
    place: CellPlace,
    campaign: &Campaign,
) -> Result<Repetition, EvidenceError> {
    let dir = run_dir.repetition(&place.arm, place.rate_rps, place.repetition);
    let run = RunRecord::read(&dir.join("run.json"))?;
    let several = campaign.keys().agent.len() > 1;
    let mut files = Files { dir: &dir, torn: Vec::new() };
    let mut observed = Vec::new();
    for account in &run.agents {
        let file = kernel_file(&account.name, several);
        let rows = if dir.join(&file).exists() { files.records(&file)? } else { Vec::new() };
        observed.push(Observed { account: account.clone(), rows });
    }
    Ok(Repetition {
        place,
        schedule: files.records("schedule.jsonl")?,
        requests: files.records("requests.jsonl")?,
        gateway: read_optional(&dir.join("gateway.json"))?,
        observed,
        torn: files.torn,
        run,
    })
}

/// Reads the record files of one directory and keeps which of them are torn.
struct Files<'a> {
    dir: &'a Path,
    torn: Vec<(String, usize)>,
}

impl Files<'_> {
    fn records<T: serde::de::DeserializeOwned + Versioned>(
        &mut self,
        name: &str,
    ) -> Result<Vec<T>, RecordError> {
        let lines = read_lines(&self.dir.join(name))?;
        if lines.torn_bytes > 0 {
            self.torn.push((name.to_owned(), lines.torn_bytes));
        }
        Ok(lines.records)
    }
}

/// `kernel.jsonl`, or one file an agent when there are several.
pub(crate) fn kernel_file(agent: &str, several: bool) -> String {
    if several { format!("kernel-{agent}.jsonl") } else { "kernel.jsonl".to_owned() }
}

fn optional_lines<T: serde::de::DeserializeOwned + Versioned>(
    path: &Path,
) -> Result<Option<Vec<T>>, RecordError> {
    if path.exists() { Ok(Some(read_lines(path)?.records)) } else { Ok(None) }
}
