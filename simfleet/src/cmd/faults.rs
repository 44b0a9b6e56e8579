//! `simfleet faults`: every fault by name.

use std::io::Write;

pub(crate) fn run() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for (name, what) in simfleet::fault_list() {
        writeln!(out, "{name:<28} {what}")?;
    }
    Ok(())
}
