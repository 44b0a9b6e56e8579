//! The audit folder: written by a recorder, read here.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

use serde::de::DeserializeOwned;

use super::rows::{
    AgentPart, AuditFile, ConcentrationRow, PREFIX_SIZES, PrefixRow, RequestRow, State,
};
use crate::records::{Lines, RecordError, Versioned, read_lines};
use crate::rundir::{InflightRow, JsonError, read_json, to_json};

/// The file that says what the folder is.
const AUDIT_FILE: &str = "audit.json";
/// Rows were not written, or were taken away.
const ROWS_MISSING: &str = "rows_missing";
/// A file ends within a line.
const TORN_FILE: &str = "torn_file";
/// There are not as many rows as the agent's account says.
const ROWS_DISAGREE: &str = "rows_disagree";

/// Why a folder can't be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// There is something already.
    #[error("{path} exists: give another --out folder, an audit never writes over anything", path = path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// It is none.
    #[error("{path}: no audit folder (no audit.json); record one with `goodput audit --agent URL --out FOLDER` or `goodput-agent audit`", path = path.display())]
    NoAudit {
        /// The folder.
        path: PathBuf,
    },
    /// It can't be written.
    #[error("{path}: {cause}; choose another --out folder or free space", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// A file name leads out of the folder.
    #[error("{path}: `{name}` is no plain file name; the file was changed, record it anew", path = path.display())]
    Name {
        /// The file that names it.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// Prefixes of other lengths.
    #[error("{path}: prefix_sizes are {found:?}, this version compares {PREFIX_SIZES:?}; use the version of goodput that wrote it", path = path.display())]
    Sizes {
        /// The file.
        path: PathBuf,
        /// What is there.
        found: Vec<u32>,
    },
    /// A file of one object.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A file of rows.
    #[error(transparent)]
    Rows(#[from] RecordError),
}

/// One agent's rows.
#[derive(Clone, Debug)]
pub struct AgentRows {
    /// Who, and its account.
    pub part: AgentPart,
    /// Requests, in order of their ends.
    pub requests: Vec<RequestRow>,
    /// Hashes of their prompts.
    pub prefixes: Vec<PrefixRow>,
    /// Requests in flight.
    pub concentration: Option<ConcentrationRow>,
    /// What is wrong with the files, coded.
    pub problems: BTreeSet<String>,
}

/// A folder's content.
#[derive(Clone, Debug)]
pub struct Recording {
    /// How far it got.
    pub state: State,
    /// Length that was asked for, ns.
    pub asked_ns: u64,
    /// Every agent.
    pub agents: Vec<AgentRows>,
}

/// A folder that can be recorded into: its name is not taken.
///
/// # Errors
/// [`FolderError::Exists`] and [`FolderError::Write`].
pub fn check_new(folder: &Path) -> Result<(), FolderError> {
    if folder.symlink_metadata().is_ok() {
        return Err(FolderError::Exists { path: folder.to_owned() });
    }
    std::fs::create_dir_all(folder)
        .map_err(|cause| FolderError::Write { path: folder.to_owned(), cause })
}

/// Writes `audit.json`, whole or not at all.
///
/// # Errors
/// [`FolderError::Write`].
pub fn write_file(folder: &Path, file: &AuditFile) -> Result<(), FolderError> {
    let path = folder.join(AUDIT_FILE);
    let failed = |cause| FolderError::Write { path: path.clone(), cause };
    let bytes = to_json(file).map_err(|error| failed(error.into()))?;
    let mut partial =
        tempfile::NamedTempFile::with_suffix_in(".partial", folder).map_err(failed)?;
    partial.write_all(&bytes).map_err(failed)?;
    partial.persist(&path).map(drop).map_err(|error| failed(error.error))
}

/// Reads a folder. What it lacks becomes a coded problem; what it holds must be readable.
///
/// # Errors
/// [`FolderError`].
pub fn read(folder: &Path) -> Result<Recording, FolderError> {
    let path = folder.join(AUDIT_FILE);
    if !path.is_file() {
        return Err(FolderError::NoAudit { path: folder.to_owned() });
    }
    let file: AuditFile = read_json(&path)?;
    if file.prefix_sizes != PREFIX_SIZES {
        return Err(FolderError::Sizes { path, found: file.prefix_sizes });
    }
    let agents = file.agents.into_iter().map(|part| read_agent(folder, &path, part));
    Ok(Recording {
        state: file.state,
        asked_ns: file.asked_ns,
        agents: agents.collect::<Result<_, _>>()?,
    })
}

fn read_agent(folder: &Path, file: &Path, part: AgentPart) -> Result<AgentRows, FolderError> {
    for name in part.files.all() {
        let mut components = Path::new(name).components();
        let plain = matches!(components.next(), Some(Component::Normal(_)));
        if !plain || components.next().is_some() {
            let (path, name) = (file.to_owned(), name.to_owned());
            return Err(FolderError::Name { path, name });
        }
    }
    let mut problems: BTreeSet<String> = part.problems.iter().cloned().collect();
    let requests = rows::<RequestRow>(&folder.join(&part.files.kernel), &mut problems)?;
    let prefixes = rows::<PrefixRow>(&folder.join(&part.files.prefixes), &mut problems)?;
    // Judged by nothing, but a file that is damaged is said to be.
    rows::<InflightRow>(&folder.join(&part.files.inflight), &mut problems)?;
    let path = folder.join(&part.files.concentration);
    let concentration = path.is_file().then(|| read_json(&path)).transpose()?;
    let told = part.account.as_ref().map(|account| account.observations);
    if told.is_some_and(|told| told != requests.len() as u64) {
        problems.insert(ROWS_DISAGREE.to_owned());
    }
    Ok(AgentRows { part, requests, prefixes, concentration, problems })
}

fn rows<T: DeserializeOwned + Versioned>(
    path: &Path,
    problems: &mut BTreeSet<String>,
) -> Result<Vec<T>, FolderError> {
    if !path.is_file() {
        problems.insert(ROWS_MISSING.to_owned());
        return Ok(Vec::new());
    }
    let Lines { records, torn_bytes } = read_lines::<T>(path)?;
    if torn_bytes > 0 {
        problems.insert(TORN_FILE.to_owned());
    }
    Ok(records)
}
