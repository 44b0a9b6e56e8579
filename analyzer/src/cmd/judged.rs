//! What `run` and `verify` print in the end.

use std::io::Write as _;
use std::process::ExitCode;

use analyzer::report::summary;
use analyzer::run::Judged;
use analyzer::rundir::to_json;
use analyzer::verify::Verdict;

/// Prints the summary, or the verdict as JSON. Exit code 1 when the result is DISCARDED.
pub(crate) fn print(judged: &Judged, json: bool) -> anyhow::Result<ExitCode> {
    show(judged, json)?;
    Ok(match judged.verdict.verdict {
        Verdict::Discarded => ExitCode::FAILURE,
        Verdict::Publishable | Verdict::PublishableWithFootnote | Verdict::AddReplicates => {
            ExitCode::SUCCESS
        }
    })
}

/// Prints the same. Exit code 1 for everything that may not be published.
pub(crate) fn gate(judged: &Judged, json: bool) -> anyhow::Result<ExitCode> {
    show(judged, json)?;
    Ok(match judged.verdict.verdict {
        Verdict::Publishable | Verdict::PublishableWithFootnote => ExitCode::SUCCESS,
        Verdict::AddReplicates | Verdict::Discarded => ExitCode::FAILURE,
    })
}

fn show(judged: &Judged, json: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        out.write_all(&to_json(&judged.verdict)?)?;
    } else {
        out.write_all(summary(&judged.analysis, &judged.verdict).as_bytes())?;
    }
    Ok(())
}
