//! A request is good if and only if both latencies are within their bounds, and every failure counts.

use serde_json::Value;

use super::vector::{count, list, vector};
use super::{Check, equal};
use crate::analyze::{Bounds, Mask, good};
use crate::campaign::SingleTokenPolicy;
use crate::outcome::Class;
use crate::records::{RequestRecord, TpotUndefined};

const MS: u64 = 1_000_000;

pub(super) fn checks() -> Vec<Check> {
    let Some(template) = super::validity::request() else {
        return vec![equal("embedded request", &"unreadable", &"readable")];
    };
    let vector = vector("good_mask");
    let (input, expected) = (&vector["input"], &vector["expected"]);
    let bounds =
        Bounds { ttft_ns: count(&input["ttft_slo"]) * MS, tpot_ns: count(&input["tpot_slo"]) * MS };
    let pairs = list(&input["ttft_ms"]).iter().zip(list(&input["tpot_ms"]));
    let rows: Vec<RequestRecord> =
        pairs.map(|(ttft, tpot)| row(&template, ttft.as_u64(), tpot.as_u64())).collect();
    let mut checks = Vec::new();
    for (policy, name, key) in [
        (SingleTokenPolicy::TtftOnly, "ttft_only", "good_if_single_token_tpot_passes"),
        (SingleTokenPolicy::Miss, "miss", "good_if_single_token_excluded_from_good"),
    ] {
        let wanted: Vec<Option<bool>> = list(&expected[key]).iter().map(Value::as_bool).collect();
        for (i, row) in rows.iter().enumerate() {
            let wanted = wanted.get(i).copied().flatten();
            let name = format!("request {} of the vector under {name}", i + 1);
            checks.push(equal(name, &Some(good(row, bounds, policy)), &wanted));
        }
    }
    checks.extend(bounds_hold(&template));
    checks.extend(denominator(&template, bounds));
    checks
}

fn row(template: &RequestRecord, ttft_ms: Option<u64>, tpot_ms: Option<u64>) -> RequestRecord {
    let (class, tpot_undefined) = match (ttft_ms, tpot_ms) {
        (None, _) => (Class::Reset, None),
        (_, None) => (Class::SingleToken, Some(TpotUndefined::SingleToken)),
        _ => (Class::Ok, None),
    };
    RequestRecord {
        class,
        tpot_undefined,
        ttft_ns: ttft_ms.and_then(|ms| i64::try_from(ms * MS).ok()),
        tpot_ns: tpot_ms.map(|ms| ms * MS),
        ..template.clone()
    }
}

/// On the bound is good; a nanosecond above either is not.
fn bounds_hold(template: &RequestRecord) -> Vec<Check> {
    let bounds = Bounds { ttft_ns: 300 * MS, tpot_ns: 50 * MS };
    let cases = [
        ("both on the bound", 300_000_000, 50_000_000, true),
        ("TTFT a nanosecond over", 300_000_001, 50_000_000, false),
        ("TPOT a nanosecond over", 300_000_000, 50_000_001, false),
    ];
    let check = |(name, ttft, tpot, wanted): (&str, i64, u64, bool)| {
        let row = RequestRecord { ttft_ns: Some(ttft), tpot_ns: Some(tpot), ..template.clone() };
        equal(name, &good(&row, bounds, SingleTokenPolicy::TtftOnly), &wanted)
    };
    cases.into_iter().map(check).collect()
}

/// A scheduled request without a record is attempted, and a failed one with fine latencies is not good.
fn denominator(template: &RequestRecord, bounds: Bounds) -> Vec<Check> {
    let fine = row(template, Some(100), Some(20));
    let reset = RequestRecord { class: Class::Reset, ..fine.clone() };
    let schedule = super::validity::schedule();
    let mask = Mask::of(&schedule, &[fine, reset], bounds).ttft_only;
    vec![
        equal("failures and lost requests stay in the denominator", &mask.attempted, &4),
        equal("a failed request is not good whatever its latencies", &mask.good, &1),
    ]
}
