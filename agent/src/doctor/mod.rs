//! What this host can do for the agent, what would stand in its way, and the mend of each.
//!
//! [`gather()`] asks the host and changes nothing on it; [`examine`] judges what it found, so that tests
//! bring hosts of their own.

mod conflicts;
mod facts;
mod gather;
mod interfaces;
mod kernel;
mod offload;
mod privilege;
mod report;
mod settings;
mod surface;
mod time;
mod vip;

pub use facts::{ApiState, Clocks, Facts, File, Link, Loaded, Privileges, SocketPlaces, TokenFile};
pub use gather::{Request, gather};
pub use report::{Report, Row, SCHEMA, State};
pub use vip::{Vip, VipFacts, VipParseError};

use crate::capture::tcx::Method;

/// Judges a host: one row per thing that was looked at, in the order in which they matter.
#[must_use]
pub fn examine(facts: &Facts) -> Report {
    let method = chosen(facts);
    let mut rows = kernel::rows(facts, method);
    rows.extend(privilege::rows(facts, method));
    rows.extend(settings::rows(facts));
    rows.extend(interfaces::rows(facts));
    rows.extend(conflicts::rows(facts, method));
    rows.extend(surface::rows(facts));
    rows.extend(time::rows(facts));
    rows.extend(facts.vip.iter().flat_map(|vip| vip::rows(vip, facts)));
    Report::new(facts, method, rows)
}

/// How packets would be looked at; `None` where the kernel could not be asked.
fn chosen(facts: &Facts) -> Option<Method> {
    let suitable = |tcx| if tcx { Method::Tcx } else { Method::SocketFilter };
    facts.forced.or_else(|| facts.tcx.map(suitable))
}

/// An error's text as what is wrong and its mend, which follows the last semicolon.
fn split<'a>(error: &'a str, otherwise: &'a str) -> (&'a str, &'a str) {
    error.rsplit_once("; ").unwrap_or((error, otherwise))
}

#[cfg(test)]
mod tests;
