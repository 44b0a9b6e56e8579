//! An SLO that `goodput slo derive` measured and a campaign names: the bounds, and where they come from.

use serde::{Deserialize, Serialize};

use crate::campaign::Api;
use crate::records::Versioned;

/// What was measured, where, when and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DerivedOrigin {
    /// Name of the floor arm.
    pub arm: String,
    /// Its VIP: the path that is scored.
    pub vip: String,
    /// Model in the body.
    pub model: String,
    /// Which call.
    pub api: Api,
    /// SHA-256 of the trace's rows as replayed.
    pub trace_sha256: String,
    /// Requests sent one at a time, each with a salt of its own.
    pub requests: u64,
    /// Requests sent before them and left out.
    pub warmup: u64,
    /// Which quantile the baseline is.
    pub quantile: String,
    /// TTFT of the baseline, ns.
    pub baseline_ttft_ns: u64,
    /// TPOT of the baseline, ns.
    pub baseline_tpot_ns: u64,
    /// SLO / baseline of TTFT.
    pub ttft_multiple: f64,
    /// SLO / baseline of TPOT.
    pub tpot_multiple: f64,
    /// Share of the unloaded requests whose TTFT already exceeds the SLO.
    pub unloaded_share_over_slo: f64,
    /// When the first of them was sent, ms since 1970.
    pub began_unix_ms: u64,
    /// How long they took, ms.
    pub took_ms: u64,
    /// File of their records, beside this one.
    pub records: String,
    /// SHA-256 of it.
    pub records_sha256: String,
    /// Version of this tool.
    pub goodput_version: String,
}

/// The file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DerivedSlo {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// Largest TTFT of a good request, ns.
    pub ttft_ns: u64,
    /// Largest TPOT of a good request, ns per token.
    pub tpot_ns: u64,
    /// Where both come from.
    pub origin: DerivedOrigin,
}

impl Versioned for DerivedSlo {
    const SCHEMA: &'static str = "goodput.derived-slo/1";
}

/// The file as it was read, with the hashes that tie it to the campaign and to its records.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadDerivedSlo {
    /// What it says.
    pub slo: DerivedSlo,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// SHA-256 of the records that lie beside it.
    pub records_sha256: String,
}
