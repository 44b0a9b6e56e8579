//! One repetition: counts, tokens, validity.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::good::Mask;
use crate::campaign::SingleTokenPolicy;
use crate::evidence::Repetition;
use crate::join::CrossCheck;
use crate::outcome::Class;
use crate::records::{FramingVerdict, RequestRecord};
use crate::stats::Counts;
use crate::verify::recount::{pace, wall_incl_drain_ns, wall_ns};
use crate::verify::{Effect, Finding};

/// Prompt tokens and how many of them came from a prefix cache, over requests whose usage says both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenShare {
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Of these, served from a cache.
    pub cached_tokens: u64,
}

impl TokenShare {
    /// cached / prompt; nothing when usage did not say.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        (self.prompt_tokens > 0).then(|| self.cached_tokens as f64 / self.prompt_tokens as f64)
    }

    /// Tokens of both added.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
        }
    }

    fn of(requests: &[RequestRecord]) -> Self {
        let said = requests.iter().filter_map(|row| Some((row.prompt_tokens?, row.cached_tokens?)));
        said.fold(Self::default(), |sum, (prompt_tokens, cached_tokens)| {
            sum.plus(Self { prompt_tokens, cached_tokens })
        })
    }
}

/// One repetition, reduced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepetitionAnalysis {
    /// Its number, from 1.
    pub repetition: u32,
    /// No finding discards it.
    pub valid: bool,
    /// What the gates found.
    pub findings: Vec<Finding>,
    /// Rows of the schedule by outcome class; they sum to attempted.
    pub classes: BTreeMap<String, u64>,
    /// Good and attempted under the pre-registered policy.
    pub counts: Counts,
    /// Good under the other policy, when requests without a TPOT exist.
    pub good_other_policy: Option<u64>,
    /// Requests with a TTFT and a TPOT: what the latency arrays hold.
    pub paired: u64,
    /// Responses whose framing was Invalid; 0 in everything that is published.
    pub invalid_framing: u64,
    /// 99th percentile of dispatched - planned, ns.
    pub client_lag_p99_ns: Option<i64>,
    /// Requests without a TPOT.
    pub without_tpot: u64,
    /// Prompt tokens and cached ones.
    pub tokens: TokenShare,
    /// Schedule length, ns.
    pub wall_ns: u64,
    /// First planned instant to the end of the last request, ns.
    pub wall_incl_drain_ns: u64,
    /// Client against kernel.
    pub crosscheck: CrossCheck,
}

pub(super) fn reduce(
    rep: &Repetition,
    mask: Mask,
    policy: SingleTokenPolicy,
    crosscheck: CrossCheck,
    findings: Vec<Finding>,
) -> RepetitionAnalysis {
    let other = match policy {
        SingleTokenPolicy::TtftOnly => mask.miss,
        SingleTokenPolicy::Miss => mask.ttft_only,
    };
    let without_tpot = count(rep, |row| row.tpot_undefined.is_some());
    RepetitionAnalysis {
        repetition: rep.place.repetition,
        valid: findings.iter().all(|finding| finding.effect < Effect::DiscardRepetition),
        findings,
        classes: classes(rep),
        counts: mask.by(policy),
        good_other_policy: (without_tpot > 0).then_some(other.good),
        paired: count(rep, |row| row.class.is_delivered() && row.tpot_ns.is_some()),
        invalid_framing: count(rep, |row| row.framing == FramingVerdict::Invalid),
        client_lag_p99_ns: pace(rep).lag_p99_ns,
        without_tpot,
        tokens: TokenShare::of(&rep.requests),
        wall_ns: wall_ns(rep),
        wall_incl_drain_ns: wall_incl_drain_ns(rep),
        crosscheck,
    }
}

fn count(rep: &Repetition, is: impl Fn(&RequestRecord) -> bool) -> u64 {
    rep.requests.iter().filter(|row| is(row)).count() as u64
}

/// Counts every row of the schedule once; one without a record is `lost`.
fn classes(rep: &Repetition) -> BTreeMap<String, u64> {
    let by_index: BTreeMap<u64, Class> =
        rep.requests.iter().map(|row| (row.index, row.class)).collect();
    let mut counts = BTreeMap::new();
    for row in &rep.schedule {
        let class = by_index.get(&row.index).copied().unwrap_or(Class::Lost);
        *counts.entry(class.name().to_owned()).or_insert(0) += 1;
    }
    counts
}
