//! The SLO as it follows from the campaign and, where it is a multiple, from the unloaded baseline.
//!
//! Pure: the run derives it once before the first cell, and verification derives it again from the records.

use crate::campaign::{BaselineMultiple, Campaign, FixedSlo};
use crate::records::{RequestRecord, Versioned as _};
use crate::rundir::{SloFile, SloOrigin};
use crate::stats::quantile_type1;

/// A computed deadline leaves this much above the slowest good request.
const DEADLINE_SLACK: f64 = 2.0;

/// Why there is no SLO.
#[derive(Debug, thiserror::Error)]
pub enum SloError {
    /// The campaign derives it, and the baseline's records are absent.
    #[error("the records of the baseline are absent")]
    NoBaseline,
    /// The baseline gives none.
    #[error("{0}")]
    Baseline(String),
    /// The deadline is shorter than a good request may take.
    #[error("deadline_ms is {given_ms:.0}, but a good request may take {least_ms:.0}")]
    Deadline {
        /// As given, ms.
        given_ms: f64,
        /// At least, ms.
        least_ms: f64,
    },
}

/// Derives the SLO for a trace whose longest answer has `largest_output` tokens.
///
/// # Errors
/// [`SloError`].
pub fn derive(
    campaign: &Campaign,
    largest_output: u64,
    baseline: Option<&[RequestRecord]>,
) -> Result<SloFile, SloError> {
    let keys = &campaign.keys().slo;
    match (&keys.multiple_of_baseline, &keys.fixed) {
        (Some(multiple), _) => {
            let records = baseline.ok_or(SloError::NoBaseline)?;
            multiple_of(campaign, largest_output, multiple, records)
        }
        (None, Some(fixed)) => given(campaign, largest_output, fixed),
        (None, None) => {
            Err(SloError::Baseline("the campaign names no origin of the SLO".to_owned()))
        }
    }
}

fn multiple_of(
    campaign: &Campaign,
    largest_output: u64,
    multiple: &BaselineMultiple,
    records: &[RequestRecord],
) -> Result<SloFile, SloError> {
    check(multiple, records)?;
    let sorted = |value: &dyn Fn(&RequestRecord) -> Option<u64>| {
        let mut values: Vec<u64> = records.iter().filter_map(value).collect();
        values.sort_unstable();
        values
    };
    let ttft = sorted(&|record| record.ttft_ns.and_then(|ns| u64::try_from(ns).ok()));
    let tpot = sorted(&|record| record.tpot_ns);
    let (Some(baseline_ttft_ns), Some(baseline_tpot_ns)) =
        (quantile_type1(&ttft, 0.5), quantile_type1(&tpot, 0.5))
    else {
        let text = "no request has both TTFT and TPOT; use a trace with more than one output token";
        return Err(SloError::Baseline(text.to_owned()));
    };
    let ttft_ns = scaled(baseline_ttft_ns, multiple.ttft_multiple);
    let tpot_ns = scaled(baseline_tpot_ns, multiple.tpot_multiple);
    let over = ttft.iter().filter(|ns| **ns > ttft_ns).count() as f64 / records.len() as f64;
    let target = campaign.keys().slo.target;
    if over > 1.0 - target {
        return Err(SloError::Baseline(format!(
            "{:.1} % of the unloaded requests already exceed the TTFT SLO, so {:.0} % good is out of reach; raise ttft_multiple",
            over * 100.0,
            target * 100.0
        )));
    }
    let origin = SloOrigin::MultipleOfBaseline {
        arm: campaign.floor().name.clone(),
        requests: records.len() as u64,
        baseline_ttft_ns,
        baseline_tpot_ns,
        ttft_multiple: multiple.ttft_multiple,
        tpot_multiple: multiple.tpot_multiple,
        unloaded_share_over_slo: over,
    };
    file(campaign, largest_output, (ttft_ns, tpot_ns), origin)
}

/// As many as registered, all delivered, and each with the figures that its own instants give.
fn check(multiple: &BaselineMultiple, records: &[RequestRecord]) -> Result<(), SloError> {
    if records.len() as u64 != multiple.requests {
        let (n, wanted) = (records.len(), multiple.requests);
        return Err(SloError::Baseline(format!("{n} records, {wanted} requests were registered")));
    }
    if let Some(bad) = records.iter().find(|record| !record.class.is_delivered()) {
        let (index, class, detail) = (bad.index, bad.class.name(), &bad.detail);
        return Err(SloError::Baseline(format!(
            "unloaded request {index} through the floor arm ended as {class} ({detail}); mend the path first"
        )));
    }
    match records.iter().find_map(|record| Some((record.index, record.contradiction()?))) {
        None => Ok(()),
        Some((index, what)) => Err(SloError::Baseline(format!("unloaded request {index}: {what}"))),
    }
}

fn given(campaign: &Campaign, largest_output: u64, fixed: &FixedSlo) -> Result<SloFile, SloError> {
    let bounds = (scaled(1_000_000, fixed.ttft_ms), scaled(1_000_000, fixed.tpot_ms));
    file(campaign, largest_output, bounds, SloOrigin::Fixed { origin: fixed.origin.clone() })
}

fn file(
    campaign: &Campaign,
    largest_output: u64,
    (ttft_ns, tpot_ns): (u64, u64),
    origin: SloOrigin,
) -> Result<SloFile, SloError> {
    let least = ttft_ns.saturating_add(tpot_ns.saturating_mul(largest_output.saturating_sub(1)));
    let deadline_ns = match campaign.keys().slo.deadline_ms {
        None => scaled(least, DEADLINE_SLACK),
        Some(ms) if scaled(1_000_000, ms) >= least => scaled(1_000_000, ms),
        Some(given_ms) => {
            return Err(SloError::Deadline { given_ms, least_ms: least as f64 / 1e6 });
        }
    };
    Ok(SloFile { schema: SloFile::SCHEMA.to_owned(), ttft_ns, tpot_ns, deadline_ns, origin })
}

/// `ns` times a positive factor, rounded; a product beyond 64 bits saturates.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "both factors are positive and the cast saturates"
)]
fn scaled(ns: u64, factor: f64) -> u64 {
    (ns as f64 * factor).round() as u64
}
