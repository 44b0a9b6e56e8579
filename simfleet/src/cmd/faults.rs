//! `simfleet faults`: every fault by name, and what the codes behind them mean.

use std::io::Write;

pub(crate) fn run() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for (name, what) in simfleet::fault_list() {
        writeln!(out, "{name:<28} {what}")?;
    }
    writeln!(out, "\n{}", simfleet::FAULT_CODES)?;
    Ok(())
}
