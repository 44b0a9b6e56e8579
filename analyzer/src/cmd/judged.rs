//! What `run`, `analyze` and `verify` print in the end.

use std::io::Write as _;
use std::process::ExitCode;

use analyzer::report::summary;
use analyzer::run::Judged;
use analyzer::rundir::to_json;
use analyzer::verify::Verdict;

/// Prints the summary, or the verdict as JSON. Exit code 1 when the result is DISCARDED.
pub(crate) fn print(judged: &Judged, json: bool) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    if json {
        out.write_all(&to_json(&judged.verdict)?)?;
    } else {
        out.write_all(summary(&judged.analysis, &judged.verdict).as_bytes())?;
    }
    Ok(match judged.verdict.verdict {
        Verdict::Discarded => ExitCode::FAILURE,
        Verdict::Publishable | Verdict::PublishableWithFootnote | Verdict::AddReplicates => {
            ExitCode::SUCCESS
        }
    })
}
