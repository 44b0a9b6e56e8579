//! `gateway.json`: what the gateway said of itself before and after one repetition.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::records::Versioned;

/// Configuration an arm must show. Absent keys are not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// LoxiLB's number of the selection algorithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sel: Option<i64>,
    /// LoxiLB's number of the rule's mode (4 = full proxy).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<i64>,
    /// LoxiLB's number of the exact-prefix routing mode; 0 is off.
    #[serde(default, rename = "kvExactMode", skip_serializing_if = "Option::is_none")]
    pub kv_exact_mode: Option<i64>,
    /// The mode that the log line `[KV_INV] LB mode = "..."` must name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lb_mode: Option<String>,
}

/// What the gateway reports of the arm's rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readback {
    /// The rule was found by the VIP's port and address.
    pub found: bool,
    /// Selection algorithm.
    pub sel: Option<i64>,
    /// Mode of the rule.
    pub mode: Option<i64>,
    /// Exact-prefix routing mode.
    pub kv_exact_mode: Option<i64>,
    /// Mode in the newest log line that names one.
    pub lb_mode: Option<String>,
    /// That log line.
    pub log_line: Option<String>,
    /// Endpoints of the rule, address:port.
    pub endpoints: Vec<String>,
    /// Why part of it is unknown.
    #[serde(default)]
    pub problems: Vec<String>,
}

/// Counters by series (`name{label="value"}`), or why there are none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Scrape {
    /// The exporter answered with metrics.
    Answered {
        /// Value of each series.
        series: BTreeMap<String, f64>,
    },
    /// No answer that holds metrics.
    Unavailable {
        /// Why.
        reason: String,
    },
}

/// A set of series that answer one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesFamily(pub &'static str);

impl SeriesFamily {
    /// Requests routed by their prefix.
    pub const HITS: Self = Self("loxilb_pd_kv_tier15_hits_total");
    /// Requests that could not be, by reason.
    pub const MISSES: Self = Self("loxilb_pd_kv_tier15_miss_reason_total");
}

/// What one family of counters did between two scrapes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CounterDelta {
    /// It rose by this much. A reset counts from zero.
    Value(f64),
    /// Not in the later scrape, or a scrape is missing: absent knowledge, never 0.
    Unknown,
}

/// A counter family before and after.
#[derive(Clone, Copy, Debug)]
pub struct Counter<'a> {
    /// Scrape before the repetition.
    pub before: &'a Scrape,
    /// Scrape after it.
    pub after: &'a Scrape,
}

impl Counter<'_> {
    /// Sum over the family's series of what each rose by.
    #[must_use]
    pub fn delta(&self, family: SeriesFamily) -> CounterDelta {
        let (Scrape::Answered { series: before }, Scrape::Answered { series: after }) =
            (self.before, self.after)
        else {
            return CounterDelta::Unknown;
        };
        let mut total = None;
        for (name, now) in after.iter().filter(|(name, _)| is_of(name, family)) {
            // A series appears at first use, so one that the exporter did not have yet was 0.
            let then = before.get(name).copied().unwrap_or(0.0);
            let rise = if *now >= then { now - then } else { *now };
            *total.get_or_insert(0.0) += rise;
        }
        total.map_or(CounterDelta::Unknown, CounterDelta::Value)
    }
}

fn is_of(series: &str, family: SeriesFamily) -> bool {
    series.strip_prefix(family.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('{'))
}

/// Everything of the gateway around one repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GatewayFile {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// Name of the arm.
    pub arm: String,
    /// What the campaign expects.
    pub expected: Expected,
    /// What the gateway reported before the repetition.
    pub readback: Readback,
    /// The same after it: some builds name their mode only once traffic has run.
    pub readback_after: Readback,
    /// Where the two differ, in words; empty when the mode is confirmed.
    pub mismatches: Vec<String>,
    /// Counters before.
    pub before: Scrape,
    /// Counters after.
    pub after: Scrape,
    /// Scheduled requests whose leading blocks an earlier one of the same repetition sent.
    pub repeated_prefix_requests: Option<u64>,
}

impl Versioned for GatewayFile {
    const SCHEMA: &'static str = "goodput.gateway/1";
}
