//! `manifest.json`: hashes taken before the first measured send, versions, provenance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::records::Versioned;

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
    /// Settings of the command line that depart from the campaign, in words.
    pub overrides: Vec<String>,
}

impl Versioned for Manifest {
    const SCHEMA: &'static str = "goodput.manifest/1";
}
