//! Why an export cannot be imported.

use std::path::{Path, PathBuf};

use crate::campaign::CampaignError;
use crate::rundir::JsonError;
use crate::slo::SloError;

/// Every message names the file, what is wrong and the mend.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("{path}: {cause}; name a file that the tool exported", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// It is no JSON, or a key is of another type.
    #[error("{path}: {at}{cause}; name the export as the tool wrote it ({shape})", path = path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// `line N: `, or nothing.
        at: String,
        /// What is wrong.
        cause: serde_json::Error,
        /// What was expected.
        shape: &'static str,
    },
    /// Something that is needed is absent, contradicts the rest, or is in another unit.
    #[error("{path}: {problem}; {mend}", path = path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        problem: String,
        /// What to do.
        mend: String,
    },
    /// The files do not make one campaign.
    #[error("{problem}; {mend}")]
    Together {
        /// What is wrong.
        problem: String,
        /// What to do.
        mend: String,
    },
    /// The campaign that follows is bad.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// The SLO that was named is bad.
    #[error("the SLO: {0}; name other bounds")]
    Slo(#[from] SloError),
    /// A file of the run directory cannot be written.
    #[error("{path}: {cause}; free space, or name another --out", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The run directory is there already.
    #[error("{path}: exists already; name a new directory as --out", path = path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// A JSON file cannot be written.
    #[error(transparent)]
    Artefact(#[from] JsonError),
    /// A record cannot be written.
    #[error(transparent)]
    Serialize(#[from] serde_json::Error),
}

pub(super) fn shape(
    path: &Path,
    problem: impl Into<String>,
    mend: impl Into<String>,
) -> ImportError {
    ImportError::Shape { path: path.to_owned(), problem: problem.into(), mend: mend.into() }
}

pub(super) fn together(problem: impl Into<String>, mend: impl Into<String>) -> ImportError {
    ImportError::Together { problem: problem.into(), mend: mend.into() }
}
