//! Exports of other tools become run directories, so that what was measured already can be gated.
//!
//! Each decoder turns the bytes of one export into [`Export`]; [`import`] makes a run of them and [`write()`] puts it on disk. What an export does
//! not hold is never filled in: it is listed in `import.json` and limits the verdict.

mod aiperf;
mod assemble;
mod error;
mod failure;
mod guidellm;
mod record;
mod units;
mod vllm;
mod write;

pub use assemble::{Arm, Request, Slo, import, import_with};
pub use error::ImportError;
pub use failure::Failure;
pub use write::{Imported, Repetition, write};

use std::collections::BTreeSet;
use std::path::Path;

use crate::records::TokensSource;
use crate::rundir::Lack;

/// A tool whose export can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// `profile_export.jsonl` of NVIDIA AIPerf.
    Aiperf,
    /// The result file of `vllm bench serve --save-result --save-detailed`.
    VllmBench,
    /// `benchmarks.json` of GuideLLM.
    Guidellm,
}

impl Tool {
    /// Every tool, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::Aiperf, Self::VllmBench, Self::Guidellm];

    /// As written on the command line and in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Aiperf => "aiperf",
            Self::VllmBench => "vllm-bench",
            Self::Guidellm => "guidellm",
        }
    }

    /// The shape that is read, with the versions in which it was found.
    #[must_use]
    pub fn shape(self) -> &'static str {
        match self {
            Self::Aiperf => "profile_export.jsonl (AIPerf 0.2 to 0.13)",
            Self::VllmBench => {
                "result JSON with --save-detailed and start_times (vLLM 0.11 and later)"
            }
            Self::Guidellm => "benchmarks.json, report version 1 (GuideLLM 0.4 to 0.8)",
        }
    }

    /// Decodes the bytes of one export; `path` is named in errors.
    ///
    /// # Errors
    /// [`ImportError`], which names the file, the place and the mend.
    pub fn decode(self, bytes: &[u8], path: &Path) -> Result<Export, ImportError> {
        match self {
            Self::Aiperf => aiperf::decode(bytes, path),
            Self::VllmBench => vllm::decode(bytes, path),
            Self::Guidellm => guidellm::decode(bytes, path),
        }
    }
}

/// What one file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Export {
    /// Version of the tool, where the file names one.
    pub tool_version: Option<String>,
    /// One or several runs; each is a repetition.
    pub runs: Vec<ExportedRun>,
}

/// One run of the tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExportedRun {
    /// Offered rate, requests per second, where the export names it.
    pub rate_rps: Option<f64>,
    /// Model.
    pub model: Option<String>,
    /// Every attempted request.
    pub requests: Vec<ExportedRequest>,
    /// What it lacks beside what every export lacks.
    pub lacks: BTreeSet<Lack>,
}

/// One request. Instants are nanoseconds of the exporting tool's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedRequest {
    /// When it was to be sent, or the nearest instant that is recorded; never after `sent_ns`.
    pub planned_ns: u64,
    /// When it was sent.
    pub sent_ns: u64,
    /// First token.
    pub first_token_ns: Option<u64>,
    /// Last token.
    pub last_token_ns: Option<u64>,
    /// When it ended.
    pub end_ns: u64,
    /// Prompt tokens.
    pub prompt_tokens: Option<u64>,
    /// Prompt tokens from a cache.
    pub cached_tokens: Option<u64>,
    /// Output tokens.
    pub completion_tokens: Option<u64>,
    /// Token-bearing events.
    pub token_events: u64,
    /// Where the output tokens come from; `None` when the export does not say.
    pub tokens_from: Option<TokensSource>,
    /// Id of the response.
    pub response_id: Option<String>,
    /// Why it was not delivered.
    pub failure: Option<Failure>,
}

#[cfg(test)]
mod tests;
