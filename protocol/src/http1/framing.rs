//! The verdict on one message's framing, and the ledger both decoders keep while they work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::rule::{Direction, Rule, Treatment};

/// Verdict on one message's framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Framing {
    /// The message has not reached its end: still under way, or cut short by a close.
    Incomplete,
    /// The message was seen to its own end and broke no rule that invalidates it.
    Valid,
    /// A rule was broken.
    Invalid {
        /// The rule.
        rule: Rule,
        /// Bytes from the message's first byte to the offending one.
        offset: u64,
    },
    /// Evidence is missing, so that neither verdict would be honest.
    Unknown {
        /// What is missing.
        why: UnknownCause,
    },
}

/// Why a message's framing cannot be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownCause {
    /// Bytes were lost or not captured.
    LostBytes,
    /// The connection became a tunnel (CONNECT or 101): what follows is not HTTP/1.1.
    Opaque,
}

/// How a connection's receiving direction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Close {
    /// Orderly end (FIN).
    Eof,
    /// Reset (RST) or another transport error.
    Reset,
}

/// Tolerated departures, counted per rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tolerated(BTreeMap<Rule, u64>);

impl Tolerated {
    /// How often `rule` was departed from.
    #[must_use]
    pub fn get(&self, rule: Rule) -> u64 {
        self.0.get(&rule).copied().unwrap_or(0)
    }

    /// All counted departures, in the order of the rules.
    pub fn iter(&self) -> impl Iterator<Item = (Rule, u64)> + '_ {
        self.0.iter().map(|(rule, count)| (*rule, *count))
    }

    /// True when the message kept to the grammar throughout.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, rule: Rule) {
        *self.0.entry(rule).or_insert(0) += 1;
    }
}

/// Marks that a rule was broken and decoding must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

/// Verdict and counts of the message being decoded.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    direction: Direction,
    framing: Framing,
    tolerated: Tolerated,
}

impl Ledger {
    pub(crate) fn new(direction: Direction) -> Self {
        Self { direction, framing: Framing::Incomplete, tolerated: Tolerated::default() }
    }

    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    pub(crate) fn tolerated(&self) -> &Tolerated {
        &self.tolerated
    }

    /// Books a departure at `offset` as the table says.
    pub(crate) fn note(&mut self, rule: Rule, offset: u64) -> Result<(), Broken> {
        if rule.treatment(self.direction) == Treatment::Tolerated {
            self.tolerated.add(rule);
            return Ok(());
        }
        self.invalidate(rule, offset);
        Err(Broken)
    }

    /// Sets the verdict to invalid, unless missing evidence already forbids a verdict.
    pub(crate) fn invalidate(&mut self, rule: Rule, offset: u64) {
        if matches!(self.framing, Framing::Incomplete | Framing::Valid) {
            self.framing = Framing::Invalid { rule, offset };
        }
    }

    /// Sets the verdict to unknown, unless a broken rule was already seen.
    pub(crate) fn lose(&mut self, why: UnknownCause) {
        if self.framing == Framing::Incomplete {
            self.framing = Framing::Unknown { why };
        }
    }

    /// Sets the verdict to valid, unless a worse one stands.
    pub(crate) fn complete(&mut self) {
        if self.framing == Framing::Incomplete {
            self.framing = Framing::Valid;
        }
    }
}
