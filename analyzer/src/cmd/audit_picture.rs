//! An audit's result for people: bars, intervals, judgements and what would give one.

use std::fmt::Write as _;

use analyzer::audit::{
    Affinity, AuditReport, BackendReport, Finding, RoleReport, SizeAffinity, State,
};

/// Columns of a whole bar.
const BAR: usize = 30;
/// Eighths of a column, for the end of a bar.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// The whole picture. Text that came from a file or an agent can hold no terminal command.
pub(super) fn draw(report: &AuditReport) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = head(&mut text, report);
    for role in &report.roles {
        let _ = draw_role(&mut text, role, &report.reasons);
    }
    text
}

fn clean(text: &str) -> String {
    text.escape_debug().to_string()
}

fn head(text: &mut String, report: &AuditReport) -> std::fmt::Result {
    let seconds =
        report.covered_ns.map_or_else(|| "?".to_owned(), |ns| format!("{:.1}", ns as f64 / 1e9));
    let state = match report.state {
        State::Complete => "",
        State::Interrupted => ", ended early",
        State::Recording => ", PARTIAL: the recorder was killed",
    };
    let agents: Vec<String> = report.agents.iter().map(|name| clean(name)).collect();
    writeln!(text, "audit of {seconds} s{state}; seen by {}", agents.join(", "))?;
    for note in &report.notes {
        writeln!(text, "note: {}", clean(note))?;
    }
    findings(text, &report.reasons, "")
}

fn findings(text: &mut String, findings: &[Finding], indent: &str) -> std::fmt::Result {
    for finding in findings {
        let detail = clean(&finding.detail);
        writeln!(text, "{indent}UNKNOWN {}: {detail}", finding.code.code())?;
        writeln!(text, "{indent}   mend: {}", finding.mend)?;
    }
    Ok(())
}

fn draw_role(text: &mut String, role: &RoleReport, told: &[Finding]) -> std::fmt::Result {
    write!(text, "\n{}: {} requests", role.role.code(), role.requests)?;
    if role.other_requests > 0 {
        write!(text, " ({} without a prompt left out)", role.other_requests)?;
    }
    writeln!(text)?;
    let width = role.backends.iter().map(|it| clean(&it.backend).chars().count()).max();
    for backend in &role.backends {
        draw_backend(text, backend, width.unwrap_or(0))?;
    }
    let own: Vec<Finding> = role.reasons.iter().filter(|it| !told.contains(it)).cloned().collect();
    findings(text, &own, "  ")?;
    write!(text, "  shares         {}", role.evenness.code())?;
    if let Some(within) = role.equal_within {
        write!(text, ", within {:.1} points of equal", within * 100.0)?;
    }
    writeln!(text)?;
    if let Some(turns) = role.in_turn {
        let said = if turns.in_turn { "in turn" } else { "not in turn" };
        let share = turns.whole as f64 / turns.runs.max(1) as f64;
        writeln!(
            text,
            "  order          {said}: {:.0} % of runs reach every backend once, chance gives {:.0} %",
            share * 100.0,
            turns.chance * 100.0
        )?;
    }
    match role.concentration {
        Some(ratio) => writeln!(
            text,
            "  concentration  {ratio:.2} (requests in flight: largest mean over mean)"
        )?,
        None => writeln!(text, "  concentration  idle or not observed")?,
    }
    writeln!(text, "  affinity       {}", role.affinity.code())?;
    for size in &role.prefixes {
        draw_size(text, size, role.reasons.is_empty())?;
    }
    let reading = role.reading.as_deref().unwrap_or("the evidence does not single a policy out");
    writeln!(text, "  reading        {reading}")
}

fn draw_backend(text: &mut String, backend: &BackendReport, width: usize) -> std::fmt::Result {
    let name = clean(&backend.backend);
    write!(text, "  {name:width$}  {:bar$}", bar(backend.share.unwrap_or(0.0)), bar = BAR)?;
    match (backend.share, backend.low, backend.high) {
        (Some(share), Some(low), Some(high)) => {
            let [share, low, high] = [share, low, high].map(|it| it * 100.0);
            write!(text, " {share:5.1} % [{low:.1}, {high:.1}]")?;
        }
        _ => write!(text, "     -")?,
    }
    write!(text, "  {} requests", backend.requests)?;
    if let (Some(mean), Some(peak)) = (backend.in_flight_mean, backend.in_flight_peak) {
        write!(text, ", in flight {mean:.2}, peak {peak}")?;
    }
    writeln!(text)
}

fn draw_size(text: &mut String, size: &SizeAffinity, judged: bool) -> std::fmt::Result {
    let kib = size.prefix_bytes / 1024;
    write!(text, "    {kib:2} KiB       {:10}", size.judgement.code())?;
    if let (Some(share), Some(low), Some(high)) = (size.same_share, size.low, size.high) {
        let [share, low, high] = [share, low, high].map(|it| it * 100.0);
        let (same, all) = (size.same_backend, size.repeats);
        write!(text, " {share:.0} % [{low:.0}, {high:.0}] return ({same} of {all})")?;
    }
    if let Some(chance) = size.chance {
        write!(text, ", chance {:.0} %", chance * 100.0)?;
    }
    writeln!(text)?;
    if judged && size.judgement == Affinity::Unknown {
        for finding in &size.reasons {
            let detail = clean(&finding.detail);
            writeln!(text, "                 {}: {detail}; {}", finding.code.code(), finding.mend)?;
        }
    }
    Ok(())
}

/// A bar of `share` of [`BAR`] columns.
fn bar(share: f64) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round();
    let whole = (0..BAR).filter(|column| eighths >= ((column + 1) * 8) as f64).count();
    let parts = EIGHTHS.iter().enumerate().skip(1);
    let mut reached = parts.filter(|(part, _)| eighths >= (whole * 8 + part) as f64);
    let rest = reached.next_back().map_or("", |(_, end)| end);
    "█".repeat(whole) + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_by_eighths() {
        assert_eq!(bar(0.0), "");
        assert_eq!(bar(1.0), "█".repeat(BAR));
        assert_eq!(bar(0.5), "█".repeat(BAR / 2));
        assert_eq!(bar(1.0 / (8.0 * BAR as f64)), "▏");
        assert_eq!(bar(f64::NAN), "");
        assert_eq!(bar(7.0), "█".repeat(BAR));
    }

    #[test]
    fn text_of_others_can_command_no_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
    }
}
