//! A line of `health.jsonl`: one probe of one target while cells run.

use serde::{Deserialize, Serialize};

use crate::records::Versioned;

/// What is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A virtual service of a gateway.
    Vip,
    /// An inference server.
    Backend,
}

/// One probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadinessRow {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// When it was answered or given up, CLOCK_MONOTONIC ns of the client.
    pub at_ns: u64,
    /// URL of a VIP, or address of a backend.
    pub target: String,
    /// VIP or backend.
    pub kind: TargetKind,
    /// It answered 200.
    pub ok: bool,
    /// HTTP status, when it answered.
    pub status: Option<u16>,
    /// Why it is not ok.
    pub detail: Option<String>,
}

impl Versioned for ReadinessRow {
    const SCHEMA: &'static str = "goodput.readiness/1";
}
