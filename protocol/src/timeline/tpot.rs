//! Time per output token as an exact ratio: scored in integers, never as 0.

use serde::{Deserialize, Serialize};

/// Time per output token, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tpot {
    /// Defined.
    Value(TpotValue),
    /// One output token: there is no interval.
    SingleToken,
    /// Several tokens at one instant: the intervals were not observable.
    Coalesced,
    /// No token came.
    NoToken,
}

/// A span divided by a number of intervals, both at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TpotValue {
    /// Last token event minus first token event, in nanoseconds.
    pub span_ns: u64,
    /// Output tokens minus 1.
    pub intervals: u64,
}

impl TpotValue {
    /// Whole nanoseconds per token, rounded down but never to 0.
    #[must_use]
    pub fn floor_ns(self) -> u64 {
        (self.span_ns / self.intervals.max(1)).max(1)
    }

    /// `span <= slo x intervals`, exactly.
    #[must_use]
    pub fn within(self, slo_ns: u64) -> bool {
        u128::from(self.span_ns) <= u128::from(slo_ns) * u128::from(self.intervals)
    }
}

impl Tpot {
    /// From the span between first and last token event and the number of output tokens.
    #[must_use]
    pub fn new(span_ns: i64, tokens: u64) -> Self {
        match (u64::try_from(span_ns).unwrap_or(0), tokens) {
            (_, 0) => Self::NoToken,
            (_, 1) => Self::SingleToken,
            (0, _) => Self::Coalesced,
            (span_ns, _) => Self::Value(TpotValue { span_ns, intervals: tokens - 1 }),
        }
    }

    /// The value, where there is one.
    #[must_use]
    pub fn value(self) -> Option<TpotValue> {
        if let Self::Value(value) = self { Some(value) } else { None }
    }
}
