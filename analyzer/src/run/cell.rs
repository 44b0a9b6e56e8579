//! One cell: readback, windows, replay, windows, readback, files.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::RunError;
use super::prefix;
use super::prepare::{Arm, Prepared};
use crate::agent_client::{Agent, Files, Window};
use crate::clock::Clock;
use crate::evidence::kernel_file;
use crate::prompt::Salt;
use crate::records::{AgentRecord, Versioned as _};
use crate::replay::{
    ProgressSink, ReplayConfig, RequestLimits, RunIdentity, RunSummary, Tuning, run,
};
use crate::rundir::{AgentEvidence, EvidenceFile, GatewayFile, SloFile, Told, write_json};
use crate::schedule::Schedule;

/// What opening and closing the windows and ending the last requests may take on top.
const LEASE_MARGIN: Duration = Duration::from_secs(600);

/// What every cell needs.
pub(super) struct Bench<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) agents: &'a [Agent<'a>],
    pub(super) slo: &'a SloFile,
    pub(super) clock: &'a dyn Clock,
    pub(super) stop: &'a AtomicBool,
}

/// One cell to measure.
pub(super) struct Cell<'a> {
    pub(super) arm: &'a Arm,
    pub(super) schedule: &'a Schedule,
    pub(super) repetition: u32,
    /// Name in the agents' windows and in the salt.
    pub(super) label: &'a str,
    pub(super) out: PathBuf,
}

/// What came of it.
pub(super) struct Measured {
    pub(super) summary: RunSummary,
    pub(super) gateway: GatewayFile,
}

impl Bench<'_> {
    /// Measures a cell and writes all its files, `run.json` last: its presence says that the cell is whole.
    pub(super) fn measure(
        &self,
        cell: &Cell<'_>,
        progress: &mut dyn ProgressSink,
    ) -> Result<Measured, RunError> {
        // What a crash left of this repetition is not a repetition.
        if cell.out.exists() {
            std::fs::remove_dir_all(&cell.out).map_err(RunError::io(&cell.out))?;
        }
        std::fs::create_dir_all(&cell.out).map_err(RunError::io(&cell.out))?;
        let control = &self.prepared.control;
        let gateway = self.prepared.gateway(cell.arm);
        let before = gateway.snapshot(control);
        let lease =
            Duration::from_nanos(cell.schedule.length_ns().saturating_add(self.slo.deadline_ns))
                + LEASE_MARGIN;
        let hosts = self.evidence();
        let windows: Vec<Window> =
            self.agents.iter().map(|agent| agent.open(control, cell.label, lease)).collect();
        let replayed = self.replay(cell, progress);
        let agents = self.close(&windows, &cell.out);
        let mut summary = replayed?;
        let after = gateway.snapshot(control);
        let keys = self.prepared.campaign.keys();
        let (blocks, bytes) = (keys.thresholds.prefix_blocks, keys.trace.bytes_per_token);
        let repeated = prefix::repeated(&self.prepared.trace, cell.schedule, blocks, bytes);
        let mut gateway = gateway.file(before, after, repeated);
        let evidence = self.evidence_file(&cell.arm.keys.name, hosts);
        gateway.mismatches.extend(evidence.mismatches(&gateway.expected));
        write_json(&cell.out.join("evidence.json"), &evidence)?;
        write_json(&cell.out.join("gateway.json"), &gateway)?;
        summary.run.agents = agents;
        summary.run.write(&cell.out.join("run.json"))?;
        Ok(Measured { summary, gateway })
    }

    fn replay(
        &self,
        cell: &Cell<'_>,
        progress: &mut dyn ProgressSink,
    ) -> Result<RunSummary, RunError> {
        let keys = self.prepared.campaign.keys();
        let salt = Salt::derive(keys.seed, cell.label, cell.schedule.rate_rps(), cell.repetition);
        let stall_ns = Duration::from_secs_f64(keys.slo.stall_s).as_nanos();
        let config = ReplayConfig {
            identity: RunIdentity { arm: cell.arm.keys.name.clone(), repetition: cell.repetition },
            target: &cell.arm.target,
            bearer: self.prepared.bearer.as_ref(),
            trace: &self.prepared.trace,
            schedule: cell.schedule,
            body: &self.prepared.body,
            salt: Some(salt),
            connections: keys.replay.connections,
            limits: RequestLimits {
                deadline_ns: self.slo.deadline_ns,
                stall_ns: u64::try_from(stall_ns).unwrap_or(u64::MAX),
            },
            out: &cell.out,
            workers: None,
            tuning: Tuning::default(),
        };
        Ok(run(&config, self.clock, self.stop, progress)?)
    }

    fn evidence(&self) -> Vec<Told> {
        self.agents.iter().map(|agent| agent.evidence(&self.prepared.control)).collect()
    }

    /// What the agents told before, and what they tell now.
    fn evidence_file(&self, arm: &str, before: Vec<Told>) -> EvidenceFile {
        let both = self.agents.iter().zip(before).zip(self.evidence());
        let agents = both.map(|((agent, before), after)| AgentEvidence {
            name: agent.name().to_owned(),
            before,
            after,
        });
        EvidenceFile {
            schema: EvidenceFile::SCHEMA.to_owned(),
            arm: arm.to_owned(),
            agents: agents.collect(),
        }
    }

    fn close(&self, windows: &[Window], out: &Path) -> Vec<AgentRecord> {
        let several = self.agents.len() > 1;
        let close = |(agent, window): (&Agent<'_>, &Window)| {
            let kernel = out.join(kernel_file(agent.name(), several));
            let inflight = out.join(inflight_file(agent.name(), several));
            let files = Files { kernel: &kernel, inflight: &inflight };
            agent.close(&self.prepared.control, window, files)
        };
        self.agents.iter().zip(windows).map(close).collect()
    }
}

pub(super) fn inflight_file(agent: &str, several: bool) -> String {
    if several { format!("inflight-{agent}.jsonl") } else { "inflight.jsonl".to_owned() }
}
