//! The SLO as it follows from the campaign and, where it is a multiple, from the unloaded baseline.
//!
//! Pure: the run derives it once before the first cell, and verification derives it again from the records.

use crate::campaign::{BaselineMultiple, Campaign, DerivedKeys, FixedSlo};
use crate::records::{RequestRecord, Versioned as _};
use crate::rundir::{DerivedOrigin, ReadDerivedSlo, SloFile, SloOrigin};
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
    /// What `goodput slo derive` wrote does not bear the bounds out.
    #[error(
        "SLO_WITHOUT_ORIGIN: {0}; derive it again with `goodput slo derive` on the path that is scored"
    )]
    Origin(String),
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
    derived: Option<&ReadDerivedSlo>,
) -> Result<SloFile, SloError> {
    let keys = &campaign.keys().slo;
    match (&keys.multiple_of_baseline, &keys.derived, &keys.fixed) {
        (Some(multiple), ..) => {
            let records = baseline.ok_or(SloError::NoBaseline)?;
            multiple_of(campaign, largest_output, multiple, records)
        }
        (None, Some(key), _) => {
            let records = baseline.ok_or(SloError::NoBaseline)?;
            let missing = || SloError::Origin(format!("{} is absent", key.file.display()));
            let derived = derived.ok_or_else(missing)?;
            from_derived(campaign, largest_output, key, derived, records)
        }
        (None, None, Some(fixed)) => given(campaign, largest_output, fixed),
        (None, None, None) => {
            Err(SloError::Origin("the campaign names no origin of the SLO".to_owned()))
        }
    }
}

/// The bounds that the registered file names, once its records give them again.
fn from_derived(
    campaign: &Campaign,
    largest_output: u64,
    key: &DerivedKeys,
    derived: &ReadDerivedSlo,
    records: &[RequestRecord],
) -> Result<SloFile, SloError> {
    let (slo, origin) = (&derived.slo, &derived.slo.origin);
    let (file, keys) = (key.file.display(), campaign.keys());
    let same = |what: &str, here: &str, registered: &str| match here == registered {
        true => Ok(()),
        false => Err(SloError::Origin(format!("{file}: {what} {here}, expected {registered}"))),
    };
    same("hashes to", &derived.sha256, &key.sha256)?;
    same("its records hash to", &derived.records_sha256, &origin.records_sha256)?;
    same("measured through", &origin.vip, &campaign.floor().vip)?;
    same("measured arm", &origin.arm, &campaign.floor().name)?;
    same("measured model", &origin.model, &keys.request.model)?;
    same("measured api", &format!("{:?}", origin.api), &format!("{:?}", keys.request.api))?;
    let again = multiple_of(campaign, largest_output, &multiple(origin), records)?;
    match (again.ttft_ns, again.tpot_ns) == (slo.ttft_ns, slo.tpot_ns) {
        true => Ok(again),
        false => Err(SloError::Origin(format!(
            "{file}: TTFT {} ns and TPOT {} ns, its records give {} ns and {} ns",
            slo.ttft_ns, slo.tpot_ns, again.ttft_ns, again.tpot_ns
        ))),
    }
}

fn multiple(origin: &DerivedOrigin) -> BaselineMultiple {
    BaselineMultiple {
        ttft_multiple: origin.ttft_multiple,
        tpot_multiple: origin.tpot_multiple,
        requests: origin.requests,
    }
}

/// Share of unloaded requests that are not good by `slo`; nothing without requests.
#[must_use]
pub fn unloaded_misses(slo: &SloFile, records: &[RequestRecord]) -> Option<f64> {
    let over = |record: &&RequestRecord| {
        let ttft = record.ttft_ns.and_then(|ns| u64::try_from(ns).ok());
        ttft.is_none_or(|ns| ns > slo.ttft_ns) || record.tpot_ns.is_some_and(|ns| ns > slo.tpot_ns)
    };
    let misses = records.iter().filter(over).count();
    (!records.is_empty()).then(|| misses as f64 / records.len() as f64)
}

/// The SLO as a multiple of these records.
///
/// # Errors
/// [`SloError`] when they are not all delivered, or already miss it unloaded.
pub fn multiple_of(
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
