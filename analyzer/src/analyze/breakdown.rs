//! One cell by length: which requests miss.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::good::{Bounds, good};
use crate::campaign::SingleTokenPolicy;
use crate::evidence::Repetition;
use crate::records::ScheduleRecord;
use crate::stats::Counts;

/// Upper ends (exclusive) of the bands of planned tokens; the last band has none.
const INPUT_BANDS: [u64; 4] = [1_024, 4_096, 16_384, 65_536];
const OUTPUT_BANDS: [u64; 4] = [16, 64, 256, 1_024];

/// Requests of one band of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Band {
    /// Fewest tokens.
    pub from_tokens: u64,
    /// One more than the most tokens; nothing in the last band.
    pub below_tokens: Option<u64>,
    /// Good and attempted.
    pub counts: Counts,
}

/// Good and attempted by planned length, over the valid repetitions. Bands without requests are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByLength {
    /// By prompt tokens; rows whose length the trace does not tell are left out.
    pub input: Vec<Band>,
    /// By output tokens.
    pub output: Vec<Band>,
}

impl ByLength {
    pub(super) fn of(valid: &[&Repetition], bounds: Bounds, policy: SingleTokenPolicy) -> Self {
        let judged = Judged { valid, bounds, policy };
        Self {
            input: judged.bands(&INPUT_BANDS, |row| row.input_tokens),
            output: judged.bands(&OUTPUT_BANDS, |row| Some(row.output_tokens)),
        }
    }
}

struct Judged<'a> {
    valid: &'a [&'a Repetition],
    bounds: Bounds,
    policy: SingleTokenPolicy,
}

impl Judged<'_> {
    fn bands(&self, ends: &[u64], length: fn(&ScheduleRecord) -> Option<u64>) -> Vec<Band> {
        let mut counts = BTreeMap::<usize, Counts>::new();
        for rep in self.valid {
            let is_good: BTreeMap<u64, bool> = rep
                .requests
                .iter()
                .map(|row| (row.index, good(row, self.bounds, self.policy)))
                .collect();
            for row in &rep.schedule {
                let Some(tokens) = length(row) else { continue };
                let band = ends.partition_point(|end| *end <= tokens);
                let good = u64::from(is_good.get(&row.index) == Some(&true));
                let sum = counts.entry(band).or_default();
                *sum = sum.plus(Counts { good, attempted: 1 });
            }
        }
        let band = |(place, counts): (usize, Counts)| Band {
            from_tokens: place
                .checked_sub(1)
                .and_then(|below| ends.get(below))
                .copied()
                .unwrap_or(0),
            below_tokens: ends.get(place).copied(),
            counts,
        };
        counts.into_iter().map(band).collect()
    }
}
