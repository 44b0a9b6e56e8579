//! One load under an agent's eyes.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::ensure;
use serde::Deserialize;

use crate::agent::{Agent, Closing};
use crate::host::{Program, process_cpu_ns, programs};
use crate::load::{Outcome, Plan};
use crate::remote::Load;

/// The parts of a row (`docs/formats.md`) that are compared.
#[derive(Deserialize)]
struct Row {
    trace_id: Option<String>,
    token_events: u64,
    completion_tokens: Option<u64>,
    response_bytes: u64,
    framing: String,
    outcome: String,
}

/// All rows of a window.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    /// Requests with a trace id of their own.
    pub(super) distinct: u64,
    /// Token events.
    pub(super) events: u64,
    /// Output tokens by usage.
    pub(super) tokens: u64,
    /// Bytes of responses.
    pub(super) bytes: u64,
    /// Rows that are not a good stream in valid framing.
    pub(super) faulty: u64,
}

/// What agent and client counted.
pub(super) struct Observed {
    pub(super) outcome: Outcome,
    pub(super) closing: Closing,
    pub(super) rows: Rows,
    /// CPU time of the agent while the load ran and the window drained.
    pub(super) agent_cpu_ns: u64,
    /// Run time and count over the run, by program.
    pub(super) programs: Vec<Program>,
}

/// Runs `plan` with an agent on its endpoints; `during` is called once it runs.
pub(super) fn observed(
    binary: &Path,
    plan: &Plan,
    during: impl FnOnce(&Agent) -> anyhow::Result<()>,
) -> anyhow::Result<Observed> {
    let mut load = Load::prepare(plan)?;
    let agent = Agent::start(binary, &load.ready.endpoints)?;
    let window = agent.open()?;
    let (cpu, before) = (process_cpu_ns(agent.pid())?, programs(agent.pid())?);
    load.begin()?;
    during(&agent)?;
    let outcome = load.finish()?;
    let closing = agent.close(&window)?;
    let after = programs(agent.pid())?;
    let agent_cpu_ns = process_cpu_ns(agent.pid())? - cpu;
    let rows = read_rows(&agent.rows(&window)?)?;
    let programs = difference(&before, after);
    Ok(Observed { outcome, closing, rows, agent_cpu_ns, programs })
}

fn difference(before: &[Program], after: Vec<Program>) -> Vec<Program> {
    let since = |program: Program| {
        let old = before.iter().find(|it| it.id == program.id).cloned().unwrap_or_default();
        Program {
            run_time_ns: program.run_time_ns - old.run_time_ns,
            run_count: program.run_count - old.run_count,
            ..program
        }
    };
    after.into_iter().map(since).collect()
}

fn read_rows(text: &str) -> anyhow::Result<Rows> {
    let mut rows = Rows::default();
    let mut ids = BTreeSet::new();
    for line in text.lines() {
        let row: Row = serde_json::from_str(line)?;
        ids.extend(row.trace_id);
        rows.events += row.token_events;
        rows.tokens += row.completion_tokens.unwrap_or(0);
        rows.bytes += row.response_bytes;
        let good = matches!(row.outcome.as_str(), "ok" | "single_token");
        rows.faulty += u64::from(!good || row.framing != "valid");
    }
    rows.distinct = u64::try_from(ids.len())?;
    Ok(rows)
}

/// Kernel time per run of the packet programs.
pub(super) struct PacketCost {
    pub(super) run_time_ns: u64,
    pub(super) run_count: u64,
}

/// Sums the packet programs.
pub(super) fn packet_cost(programs: &[Program]) -> anyhow::Result<PacketCost> {
    let packets = programs.iter().filter(|it| it.kind.starts_with("packets"));
    let cost =
        packets.fold(PacketCost { run_time_ns: 0, run_count: 0 }, |sum, program| PacketCost {
            run_time_ns: sum.run_time_ns + program.run_time_ns,
            run_count: sum.run_count + program.run_count,
        });
    ensure!(
        cost.run_count > 0,
        "the kernel counted no run of the packet programs; mend: run as root (BPF_ENABLE_STATS)"
    );
    Ok(cost)
}
