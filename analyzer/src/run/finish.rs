//! Phases 4 and 5 from a run directory: what `run` ends with, and `analyze` and `verify` repeat.

use std::path::Path;

use super::RunError;
use crate::analyze::{AnalysisFile, analyze};
use crate::evidence::{Evidence, load};
use crate::rundir::{RunDir, write_json};
use crate::verify::{SecondComputation, VerdictFile, verify};

/// A judged run.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What it was judged from.
    pub evidence: Evidence,
    /// `analysis.json`.
    pub analysis: AnalysisFile,
    /// `verdict.json`.
    pub verdict: VerdictFile,
}

/// Reads a run directory, writes `analysis.json` and `verdict.json`, has the figures computed a second time, and
/// gives both.
///
/// # Errors
/// [`RunError`] when an artefact is absent or bad.
pub fn analyze_dir(root: &Path, second: &dyn SecondComputation) -> Result<Judged, RunError> {
    let dir = RunDir::new(root);
    let evidence = load(&dir)?;
    let analysis = analyze(&evidence);
    let verdict = verify(&evidence, &analysis, &root.display().to_string());
    write_json(&dir.file("analysis.json"), &analysis)?;
    // What is compared includes the wins, so they are put down first.
    write_json(&dir.file("verdict.json"), &verdict)?;
    let verdict = verdict.with(&second.compute(root));
    write_json(&dir.file("verdict.json"), &verdict)?;
    Ok(Judged { evidence, analysis, verdict })
}
