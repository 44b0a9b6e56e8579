//! The good mask itself.

use serde_json::Value;

use super::super::Counts;
use super::{Vector, vector_tests};
use crate::analyze::{Bounds, Mask, good};
use crate::campaign::SingleTokenPolicy;
use crate::outcome::Class;
use crate::records::{RequestRecord, ScheduleRecord, TpotUndefined};
use crate::testkit::{delivered, failed, repetition, trace_id};

const MS: u64 = 1_000_000;

/// The vector's rows as records: no TTFT is a failed request, no TPOT beside a TTFT a single token.
fn rows(v: &Vector) -> Vec<RequestRecord> {
    let list = |key| v.input(key).as_array().unwrap().iter().map(Value::as_u64);
    let pairs = list("ttft_ms").zip(list("tpot_ms"));
    let row = |(index, (ttft, tpot)): (u64, (Option<u64>, Option<u64>))| {
        let ttft_ns = i64::try_from(ttft.unwrap_or(1) * MS).unwrap();
        let row = delivered(trace_id("floor", 1.0, 1, index), index, ttft_ns);
        match (ttft, tpot) {
            (None, _) => failed(&row, Class::Reset),
            (_, Some(tpot)) => RequestRecord { tpot_ns: Some(tpot * MS), ..row },
            (_, None) => RequestRecord {
                class: Class::SingleToken,
                tpot_ns: None,
                tpot_undefined: Some(TpotUndefined::SingleToken),
                ..row
            },
        }
    };
    (0..).zip(pairs).map(row).collect()
}

fn schedule(n: usize) -> Vec<ScheduleRecord> {
    repetition("floor", 40.0, 1, 1).schedule.into_iter().take(n).collect()
}

vector_tests! {
    good_mask => |v| {
        let (rows, row) = (rows(v), v.expected());
        let slo = |key| v.input(key).as_u64().unwrap() * MS;
        let bounds = Bounds { ttft_ns: slo("ttft_slo"), tpot_ns: slo("tpot_slo") };
        for (key, policy) in [
            ("good_if_single_token_tpot_passes", SingleTokenPolicy::TtftOnly),
            ("good_if_single_token_excluded_from_good", SingleTokenPolicy::Miss),
        ] {
            let expected = row.value(key).as_array().unwrap().iter().map(|x| x.as_bool().unwrap());
            let actual = rows.iter().map(|row| good(row, bounds, policy));
            assert_eq!(actual.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
        let mask = Mask::of(&schedule(rows.len()), &rows, bounds);
        assert_eq!(mask.ttft_only.attempted, row.count("attempted") as u64);
        let fraction = |counts: Counts| counts.fraction().unwrap();
        assert_eq!(fraction(mask.ttft_only), row.number("fraction_pass"));
        assert_eq!(fraction(mask.miss), row.number("fraction_strict"));
    };
}
