//! The run directory of an import. The manifest comes last: without it a directory is no run.

use std::io::Write as _;
use std::path::Path;

use super::error::ImportError;
use crate::campaign::Campaign;
use crate::records::{RequestRecord, RunRecord, ScheduleRecord};
use crate::rundir::{ImportFile, Manifest, RunDir, SloFile, write_json};

/// One repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct Repetition {
    /// `run.json`.
    pub run: RunRecord,
    /// `schedule.jsonl`.
    pub schedule: Vec<ScheduleRecord>,
    /// `requests.jsonl`.
    pub records: Vec<RequestRecord>,
}

/// A run directory that is not written yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// `campaign.toml`.
    pub campaign: Campaign,
    /// `slo.json`.
    pub slo: SloFile,
    /// `manifest.json`.
    pub manifest: Manifest,
    /// `import.json`.
    pub import: ImportFile,
    /// By arm, rate and number.
    pub repetitions: Vec<Repetition>,
}

/// Writes everything into `root`, which must not exist.
///
/// # Errors
/// [`ImportError`] when it exists or cannot be written.
pub fn write(imported: &Imported, root: &Path) -> Result<(), ImportError> {
    if root.exists() {
        return Err(ImportError::Exists { path: root.to_owned() });
    }
    let dir = RunDir::new(root);
    for rep in &imported.repetitions {
        let place = dir.repetition(&rep.run.arm, rep.run.rate_rps, rep.run.repetition);
        std::fs::create_dir_all(&place).map_err(failed(&place))?;
        lines(&place.join("schedule.jsonl"), &rep.schedule)?;
        lines(&place.join("requests.jsonl"), &rep.records)?;
        write_json(&place.join("run.json"), &rep.run)?;
    }
    bytes(&dir.file("campaign.toml"), imported.campaign.bytes())?;
    // Other tools do not export what they sent.
    bytes(&dir.file("trace.jsonl"), b"")?;
    write_json(&dir.file("slo.json"), &imported.slo)?;
    write_json(&dir.file(ImportFile::NAME), &imported.import)?;
    Ok(write_json(&dir.file("manifest.json"), &imported.manifest)?)
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> ImportError {
    let path = path.to_owned();
    |cause| ImportError::Write { path, cause }
}

fn bytes(path: &Path, bytes: &[u8]) -> Result<(), ImportError> {
    std::fs::write(path, bytes).map_err(failed(path))
}

fn lines<T: serde::Serialize>(path: &Path, rows: &[T]) -> Result<(), ImportError> {
    let file = std::fs::File::create(path).map_err(failed(path))?;
    let mut out = std::io::BufWriter::new(file);
    for row in rows {
        serde_json::to_writer(&mut out, row)?;
        out.write_all(b"\n").map_err(failed(path))?;
    }
    out.flush().map_err(failed(path))
}
