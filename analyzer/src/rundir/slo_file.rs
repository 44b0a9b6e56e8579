//! `slo.json`: the SLO and where it comes from.

use serde::{Deserialize, Serialize};

use crate::records::Versioned;

/// How the SLO came to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SloOrigin {
    /// A multiple of the unloaded baseline through the floor arm.
    MultipleOfBaseline {
        /// Name of the floor arm.
        arm: String,
        /// Requests sent one at a time.
        requests: u64,
        /// Their median TTFT (type 1), ns.
        baseline_ttft_ns: u64,
        /// Their median TPOT (type 1), ns.
        baseline_tpot_ns: u64,
        /// SLO / baseline of TTFT.
        ttft_multiple: f64,
        /// SLO / baseline of TPOT.
        tpot_multiple: f64,
        /// Share of the unloaded requests whose TTFT already exceeds the SLO.
        unloaded_share_over_slo: f64,
    },
    /// Given in the campaign.
    Fixed {
        /// Where the numbers come from, in the campaign's words.
        origin: String,
    },
}

/// The two bounds, the deadline and their origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SloFile {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// Largest TTFT of a good request, ns from the planned instant.
    pub ttft_ns: u64,
    /// Largest TPOT of a good request, ns per token.
    pub tpot_ns: u64,
    /// Deadline of a request, ns from the planned instant.
    pub deadline_ns: u64,
    /// Where the bounds come from.
    pub origin: SloOrigin,
}

impl SloFile {
    /// The same bounds and deadline; a derived one also from the same medians.
    #[must_use]
    pub fn same_bounds(&self, other: &Self) -> bool {
        let medians = |origin: &SloOrigin| match origin {
            SloOrigin::MultipleOfBaseline {
                requests, baseline_ttft_ns, baseline_tpot_ns, ..
            } => Some((*requests, *baseline_ttft_ns, *baseline_tpot_ns)),
            SloOrigin::Fixed { .. } => None,
        };
        (self.ttft_ns, self.tpot_ns, self.deadline_ns)
            == (other.ttft_ns, other.tpot_ns, other.deadline_ns)
            && medians(&self.origin) == medians(&other.origin)
    }
}

impl Versioned for SloFile {
    const SCHEMA: &'static str = "goodput.slo/1";
}
