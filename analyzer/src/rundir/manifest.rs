//! `manifest.json`: hashes taken before the first measured send, versions, provenance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::records::Versioned;

/// A setting of the command line that falls short of the campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Override {
    /// Fewer repetitions of each cell.
    Repetitions {
        /// By the command line.
        asked: u32,
        /// By the campaign.
        registered: u32,
    },
    /// A shorter burst of phase 2.
    ProbeSeconds {
        /// By the command line, s.
        asked: f64,
        /// By the campaign, s.
        registered: f64,
    },
    /// The campaign's agents left out.
    WithoutAgent {
        /// How many it lists.
        agents: u64,
    },
}

/// What a run is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// Name of the campaign.
    pub name: String,
    /// Campaign file as named on the command line; what continues the run.
    pub campaign_path: String,
    /// SHA-256 of `campaign.toml`, taken before the first send.
    pub campaign_sha256: String,
    /// SHA-256 of the trace file as read.
    pub trace_source_sha256: String,
    /// SHA-256 of `trace.jsonl`, the rows as replayed.
    pub trace_sha256: String,
    /// Provenance of the trace: source, rule, row numbers. Copied from the file the campaign names.
    pub trace_origin: Option<serde_json::Value>,
    /// SHA-256 of each schedule, by `r<rate>/rep<N>`.
    pub schedules: BTreeMap<String, String>,
    /// SHA-256 over the sorted addresses of VIPs and backends, their models and the gateways' versions.
    pub fleet_fingerprint: String,
    /// Version of this tool.
    pub goodput_version: String,
    /// Release of the client host's kernel.
    pub kernel: String,
    /// Measured without the agents that the campaign lists.
    pub without_agent: bool,
    /// Settings of the command line that the run was begun with and that fall short of the campaign.
    pub overrides: Vec<Override>,
}

impl Manifest {
    /// What `other` decides otherwise, for people. Where the campaign file lies decides nothing.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let pairs = [
            ("campaign.toml", self.campaign_sha256 != other.campaign_sha256),
            ("the trace file", self.trace_source_sha256 != other.trace_source_sha256),
            ("the rows of the trace", self.trace_sha256 != other.trace_sha256),
            ("the trace's origin", self.trace_origin != other.trace_origin),
            ("the schedules", self.schedules != other.schedules),
            (
                "the fleet (VIPs, backends, their models)",
                self.fleet_fingerprint != other.fleet_fingerprint,
            ),
            ("the version of goodput", self.goodput_version != other.goodput_version),
            ("this host's kernel", self.kernel != other.kernel),
            ("--without-agent", self.without_agent != other.without_agent),
            ("the name", self.name != other.name),
            ("the command line's overrides", self.overrides != other.overrides),
            ("the schema", self.schema != other.schema),
        ];
        pairs.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect()
    }
}

impl Versioned for Manifest {
    const SCHEMA: &'static str = "goodput.manifest/1";
}
