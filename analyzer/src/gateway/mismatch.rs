//! What the gateway reports against what the arm expects.

use crate::rundir::{Expected, Readback};

/// Differences in words; empty when everything that is expected is confirmed. Keys of the rule must hold
/// before and after; the log's mode must hold after, because it is named at the first lookup only.
#[must_use]
pub fn mismatches(expected: &Expected, before: &Readback, after: &Readback) -> Vec<String> {
    let mut found = Vec::new();
    for (when, readback) in [("before", before), ("after", after)] {
        let keys = [
            ("sel", expected.sel, readback.sel),
            ("mode", expected.mode, readback.mode),
            ("kvExactMode", expected.kv_exact_mode, readback.kv_exact_mode),
        ];
        for (key, wanted, actual) in keys {
            let Some(wanted) = wanted.filter(|wanted| actual != Some(*wanted)) else { continue };
            let problems = readback.problems.join("; ");
            let actual =
                actual.map_or_else(|| format!("not reported ({problems})"), |n| n.to_string());
            found.push(format!("{key} is {actual} {when} the repetition, expected {wanted}"));
        }
    }
    if let Some(wanted) = expected.lb_mode.as_ref().filter(|w| after.lb_mode.as_ref() != Some(*w)) {
        let actual = after.lb_mode.as_deref().unwrap_or("not named");
        found.push(format!("LB mode in the log is {actual}, expected {wanted}"));
    }
    found
}
