//! Writes an audit folder: `audit.json` says how far the recording got, and is written first and last.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use crate::endpoint::Endpoint;
use crate::inflight::{Concentration, InflightRow};
use crate::prompt::PREFIX_SIZES;
use crate::window::Closing;

/// Name and version of `audit.json`.
const AUDIT_SCHEMA: &str = "goodput.audit/1";
const AUDIT_FILE: &str = "audit.json";
const KERNEL_FILE: &str = "kernel.jsonl";
const INFLIGHT_FILE: &str = "inflight.jsonl";
const PREFIXES_FILE: &str = "prefixes.jsonl";
const CONCENTRATION_FILE: &str = "concentration.json";

/// A folder that can't be written.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// There is something already.
    #[error("{} exists: give another --out folder, an audit never writes over anything", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The system refused.
    #[error("{}: {source}; choose another --out folder or free space", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// How far a recording got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It was begun.
    Recording,
    /// It lasted as long as was asked for.
    Complete,
    /// It was ended early, in order.
    Interrupted,
}

/// What `audit.json` says; keys are written in this order.
#[derive(Clone, Debug)]
pub struct Account {
    /// Name of the agent.
    pub name: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Name of the source.
    pub source: &'static str,
    /// Endpoints watched.
    pub endpoints: Vec<Endpoint>,
    /// Length that was asked for, ns.
    pub asked_ns: u64,
}

#[derive(Serialize)]
struct AuditFile<'a> {
    schema: &'static str,
    state: State,
    asked_ns: u64,
    prefix_sizes: [u32; PREFIX_SIZES.len()],
    agents: [AgentPart<'a>; 1],
}

#[derive(Serialize)]
struct AgentPart<'a> {
    name: &'a str,
    url: Option<&'a str>,
    version: &'static str,
    kernel: &'a str,
    source: &'static str,
    endpoints: &'a [Endpoint],
    opened_after_ns: u64,
    account: Option<&'a Closing>,
    problems: [&'static str; 0],
    files: Files,
}

#[derive(Serialize)]
struct Files {
    kernel: &'static str,
    inflight: &'static str,
    prefixes: &'static str,
    concentration: &'static str,
}

/// Everything that a window holds.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Lines of `kernel.jsonl`.
    pub observations: Vec<Arc<str>>,
    /// Rows of `inflight.jsonl`.
    pub inflight: Vec<InflightRow>,
    /// Lines of `prefixes.jsonl`.
    pub prefixes: Vec<Arc<str>>,
    /// The concentration.
    pub concentration: Concentration,
}

/// A folder under way.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    account: Account,
}

impl Folder {
    /// Nothing of that name may be there.
    ///
    /// # Errors
    /// [`AuditError::Exists`].
    pub fn check_new(path: &Path) -> Result<(), AuditError> {
        if path.symlink_metadata().is_ok() {
            return Err(AuditError::Exists { path: path.to_owned() });
        }
        Ok(())
    }

    /// Makes the folder and says in it that it is being recorded.
    ///
    /// # Errors
    /// [`AuditError`].
    pub fn begin(path: &Path, account: Account) -> Result<Self, AuditError> {
        Self::check_new(path)?;
        std::fs::create_dir_all(path)
            .map_err(|source| AuditError::Write { path: path.to_owned(), source })?;
        let folder = Self { path: path.to_owned(), account };
        folder.say(State::Recording, None)?;
        Ok(folder)
    }

    /// Where observations go while requests end, so that a killed recorder leaves them behind.
    ///
    /// # Errors
    /// [`AuditError::Write`].
    pub fn live(&self) -> Result<File, AuditError> {
        let path = self.path.join(KERNEL_FILE);
        File::create_new(&path).map_err(|source| AuditError::Write { path, source })
    }

    /// Writes everything, and last of all that the recording ended.
    ///
    /// # Errors
    /// [`AuditError::Write`].
    pub fn finish(&self, state: State, closing: &Closing, rows: &Rows) -> Result<(), AuditError> {
        self.lines(KERNEL_FILE, rows.observations.iter().map(|row| Ok(row.to_string())))?;
        self.lines(INFLIGHT_FILE, rows.inflight.iter().map(serde_json::to_string))?;
        self.lines(PREFIXES_FILE, rows.prefixes.iter().map(|row| Ok(row.to_string())))?;
        let concentration = std::iter::once(serde_json::to_string(&rows.concentration));
        self.lines(CONCENTRATION_FILE, concentration)?;
        self.say(state, Some(closing))
    }

    fn say(&self, state: State, closing: Option<&Closing>) -> Result<(), AuditError> {
        let Account { name, kernel, source, endpoints, asked_ns } = &self.account;
        let part = AgentPart {
            name,
            url: None,
            version: env!("CARGO_PKG_VERSION"),
            kernel,
            source,
            endpoints,
            opened_after_ns: 0,
            account: closing,
            problems: [],
            files: Files {
                kernel: KERNEL_FILE,
                inflight: INFLIGHT_FILE,
                prefixes: PREFIXES_FILE,
                concentration: CONCENTRATION_FILE,
            },
        };
        let file = AuditFile {
            schema: AUDIT_SCHEMA,
            state,
            asked_ns: *asked_ns,
            prefix_sizes: PREFIX_SIZES,
            agents: [part],
        };
        self.lines(AUDIT_FILE, std::iter::once(serde_json::to_string_pretty(&file)))
    }

    /// Writes a file whole or not at all.
    fn lines(
        &self,
        name: &str,
        lines: impl Iterator<Item = serde_json::Result<String>>,
    ) -> Result<(), AuditError> {
        let path = self.path.join(name);
        let partial = self.path.join(format!("{name}.partial"));
        let write = || {
            let mut file = std::io::BufWriter::new(File::create(&partial)?);
            for line in lines {
                writeln!(file, "{}", line?)?;
            }
            file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_data()?;
            std::fs::rename(&partial, &path)
        };
        write().map_err(|source| AuditError::Write { path: path.clone(), source })
    }
}
