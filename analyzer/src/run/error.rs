//! Why a campaign could not be run. Every message names the mend.

use std::path::PathBuf;

use crate::campaign::CampaignError;
use crate::control::ControlError;
use crate::evidence::EvidenceError;
use crate::health::ReadinessError;
use crate::records::RecordError;
use crate::replay::{ReplayError, TargetError, TokenError};
use crate::rundir::JsonError;
use crate::schedule::ScheduleError;
use crate::slo::SloError;
use crate::trace::TraceError;

/// A campaign that did not reach its verdict.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The campaign file.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// The file of an SLO is there already.
    #[error("{path}: exists already; name a new file as --out", path = path.display())]
    SloExists {
        /// The file.
        path: PathBuf,
    },
    /// A campaign that `goodput import` wrote.
    #[error("{path}: an imported campaign has nothing to send to; judge it with `goodput verify`, or write a campaign of your own", path = path.display())]
    Imported {
        /// The campaign.
        path: PathBuf,
    },
    /// The trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A schedule.
    #[error("[load]: {0}")]
    Schedule(#[from] ScheduleError),
    /// A VIP's URL.
    #[error("arm {arm}: {source}")]
    Target {
        /// Name of the arm.
        arm: String,
        /// Why.
        source: TargetError,
    },
    /// A token file.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A replay.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A control call.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Readiness.
    #[error(transparent)]
    Readiness(#[from] ReadinessError),
    /// A JSON file.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A record file.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The evidence of the finished run.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// Writing JSON.
    #[error("cannot write JSON: {0}")]
    Serialize(#[from] serde_json::Error),
    /// A file or directory.
    #[error("{path}: {source}; check the path, its permissions and the space left", path = path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Phase 0 failed.
    #[error("phase 0: {0}")]
    Unhealthy(String),
    /// An agent that the campaign lists does not answer.
    #[error(
        "agent {name}: {source}; start goodput-agent there (`goodput-agent doctor` says what is missing), or measure without: --without-agent"
    )]
    Agent {
        /// Its name.
        name: String,
        /// Why.
        source: ControlError,
    },
    /// The run directory is taken.
    #[error("{path}: holds a run already; continue it with --resume, measure anew with --replace, or give another --run-dir", path = path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// The run directory is somebody else's.
    #[error(
        "{path}: {}, so nothing in it is touched; give another --run-dir",
        stranger.as_ref().map_or_else(
            || "not empty, and its manifest.json is absent or none of a run".to_owned(),
            |it| format!("holds {}, which no run writes", it.display())
        ),
        path = path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The first entry that no run writes.
        stranger: Option<PathBuf>,
    },
    /// The run directory has no name of its own.
    #[error("run directory \"{path}\": a run needs a directory of its own; name one, for example --run-dir runs/monday", path = path.display())]
    Unnamed {
        /// As given.
        path: PathBuf,
    },
    /// `--resume` with another campaign.
    #[error("{path}: this run pre-registered otherwise: {}; restore that, or measure anew with --replace", what.join(", "), path = path.display())]
    ResumeDiffers {
        /// The directory.
        path: PathBuf,
        /// What differs.
        what: Vec<&'static str>,
    },
    /// The baseline cannot give an SLO.
    #[error("SLO baseline: {0}")]
    Baseline(String),
    /// The deadline is too short.
    #[error(
        "[slo] deadline_ms is {given_ms:.0}, but a good request may take {least_ms:.0} (TTFT SLO + TPOT SLO x (largest output - 1)); raise it, or leave it out to have it computed"
    )]
    Deadline {
        /// As given, ms.
        given_ms: f64,
        /// At least, ms.
        least_ms: f64,
    },
    /// A signal.
    #[error("stopped by a signal; finished repetitions are kept; continue with:\n  {resume}")]
    Interrupted {
        /// The command that continues.
        resume: String,
    },
}

impl From<SloError> for RunError {
    fn from(error: SloError) -> Self {
        match error {
            SloError::Deadline { given_ms, least_ms } => Self::Deadline { given_ms, least_ms },
            other => Self::Baseline(other.to_string()),
        }
    }
}

impl RunError {
    pub(super) fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}
