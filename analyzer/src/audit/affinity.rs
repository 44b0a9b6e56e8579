//! Whether requests that share a prefix go to the same backend more often than chance would have it.

use std::collections::HashMap;

use serde::Serialize;

use super::fleet::{Prefix, Request};
use super::judge::{Finding, Reason};
use super::rows::PREFIX_SIZES;
use crate::stats::{Counts, wilson};

/// Two-sided confidence of every interval of an audit.
pub(super) const CONFIDENCE: f64 = 0.95;
/// Fewer requests with an earlier one of the same prefix say nothing.
const MIN_REPEATS: u64 = 20;
/// Fewer prefixes that came again could go to one backend for any reason.
const MIN_PREFIXES: usize = 3;
/// Affinity that matters: a fifth of the way from chance to always.
const MARGIN: f64 = 0.2;
/// Above this, chance leaves no room to tell affinity from it.
const MAX_CHANCE: f64 = 0.9;
/// Share of prompts whose prefix was not seen, above which the rest may be no fair sample.
const MAX_UNSEEN: f64 = 0.1;

/// What is said about affinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Affinity {
    /// Requests that share a prefix return to the same backend.
    Sticky,
    /// They do not, beyond what chance gives.
    NotSticky,
    /// The evidence does not tell.
    Unknown,
}

impl Affinity {
    /// Its code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Sticky => "STICKY",
            Self::NotSticky => "NOT_STICKY",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// Affinity at one prefix length; keys are written in this order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeAffinity {
    /// Length of the prefix, bytes.
    pub prefix_bytes: u32,
    /// What is said.
    pub judgement: Affinity,
    /// Why nothing is said.
    pub reasons: Vec<Finding>,
    /// Requests whose prefix was hashed.
    pub hashed: u64,
    /// Requests whose prompt may be that long, but was not seen whole.
    pub unseen: u64,
    /// Prefixes that came more than once.
    pub repeated_prefixes: usize,
    /// Requests with an earlier one of the same prefix.
    pub repeats: u64,
    /// Those that went to the backend of the most recent one.
    pub same_backend: u64,
    /// Share of the repeats, and its 95 % Wilson interval.
    pub same_share: Option<f64>,
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Share that chance would give: two of the hashed requests, drawn at random, at one backend.
    pub chance: Option<f64>,
    /// (share - chance) / (1 - chance): 0 is chance, 1 is always.
    pub excess: Option<f64>,
    /// Repeats on another connection to the backend than the most recent one.
    pub repeats_apart: u64,
    /// Those that went to the backend of the most recent one.
    pub same_backend_apart: u64,
}

/// Counts over requests in order.
#[derive(Debug, Default)]
struct Tally {
    hashed: u64,
    unseen: u64,
    repeated_prefixes: usize,
    all: Counts,
    /// Without those whose connection alone explains the backend.
    apart: Counts,
    by_backend: HashMap<usize, u64>,
}

fn add(counts: &mut Counts, same: bool) {
    counts.attempted += 1;
    counts.good += u64::from(same);
}

fn tally(requests: &[Request], size: usize) -> Tally {
    let mut tally = Tally::default();
    // The most recent request of each prefix, and how many there were.
    let mut seen: HashMap<&str, (&Request, u64)> = HashMap::new();
    for request in requests.iter().filter(|request| request.at.is_some()) {
        let hash = match &request.prefixes[size] {
            Prefix::Hash(hash) => hash,
            Prefix::Unseen => {
                tally.unseen += 1;
                continue;
            }
            Prefix::None => continue,
        };
        tally.hashed += 1;
        *tally.by_backend.entry(request.backend).or_default() += 1;
        let count = match seen.get(hash.as_str()) {
            Some((earlier, count)) => {
                let same = earlier.backend == request.backend;
                add(&mut tally.all, same);
                if earlier.connection != request.connection {
                    add(&mut tally.apart, same);
                }
                count + 1
            }
            None => 1,
        };
        tally.repeated_prefixes += usize::from(count == 2);
        seen.insert(hash, (request, count));
    }
    tally
}

impl Tally {
    /// Probability that two different hashed requests are at one backend.
    fn chance(&self) -> Option<f64> {
        let total = self.hashed as f64;
        let pairs = |count: f64| count * (count - 1.0);
        let same: f64 = self.by_backend.values().map(|count| pairs(*count as f64)).sum();
        (self.hashed > 1).then(|| same / pairs(total))
    }

    fn unseen_share(&self) -> f64 {
        self.unseen as f64 / (self.hashed + self.unseen).max(1) as f64
    }
}

fn excess(share: f64, chance: f64) -> f64 {
    (share - chance) / (1.0 - chance)
}

/// Judges one prefix length over requests in order of their first bytes.
pub(super) fn affinity(requests: &[Request], size: usize) -> SizeAffinity {
    let tally = tally(requests, size);
    let (judgement, reasons) = judge(&tally);
    let share = tally.all.fraction();
    let chance = tally.chance();
    let ends = wilson(tally.all, CONFIDENCE).ends();
    let room = chance.filter(|chance| *chance < 1.0);
    SizeAffinity {
        prefix_bytes: PREFIX_SIZES[size],
        judgement,
        reasons,
        hashed: tally.hashed,
        unseen: tally.unseen,
        repeated_prefixes: tally.repeated_prefixes,
        repeats: tally.all.attempted,
        same_backend: tally.all.good,
        same_share: share,
        low: ends.map(|(low, _)| low),
        high: ends.map(|(_, high)| high),
        chance,
        excess: share.zip(room).map(|(share, chance)| excess(share, chance)),
        repeats_apart: tally.apart.attempted,
        same_backend_apart: tally.apart.good,
    }
}

fn judge(tally: &Tally) -> (Affinity, Vec<Finding>) {
    let unknown = |reason, detail: String| (Affinity::Unknown, vec![Finding::new(reason, detail)]);
    if tally.unseen_share() > MAX_UNSEEN {
        let (unseen, all) = (tally.unseen, tally.hashed + tally.unseen);
        return unknown(
            Reason::HashesMissing,
            format!("{unseen} of {all} prompts were not seen that far"),
        );
    }
    if tally.all.attempted < MIN_REPEATS {
        let repeats = tally.all.attempted;
        return unknown(
            Reason::FewRepeats,
            format!("{repeats} requests repeat a prefix of this length, {MIN_REPEATS} are needed"),
        );
    }
    let chance = tally.chance().unwrap_or(1.0);
    if chance > MAX_CHANCE {
        return unknown(
            Reason::OneBackendTakesAll,
            format!("chance alone gives {:.0} %", chance * 100.0),
        );
    }
    decide(tally, chance)
}

/// Not sticky when even with the repeats that their connection explains there is no affinity; sticky
/// when even without them there is.
fn decide(tally: &Tally, chance: f64) -> (Affinity, Vec<Finding>) {
    let unknown = |reason, detail: String| (Affinity::Unknown, vec![Finding::new(reason, detail)]);
    let ends = |counts| wilson(counts, CONFIDENCE).ends().unwrap_or((0.0, 1.0));
    let (low, high) = ends(tally.all);
    if excess(high, chance) < MARGIN {
        return (Affinity::NotSticky, Vec::new());
    }
    if excess(low, chance) <= MARGIN {
        return unknown(
            Reason::Inconclusive,
            format!(
                "{:.0} to {:.0} % return to the same backend, chance gives {:.0} %",
                low * 100.0,
                high * 100.0,
                chance * 100.0
            ),
        );
    }
    let (low, _) = ends(tally.apart);
    if tally.apart.attempted < MIN_REPEATS || excess(low, chance) <= MARGIN {
        let Counts { good, attempted } = tally.apart;
        return unknown(
            Reason::SameConnections,
            format!("on other connections {good} of {attempted} repeats return"),
        );
    }
    if tally.repeated_prefixes < MIN_PREFIXES {
        let prefixes = tally.repeated_prefixes;
        return unknown(
            Reason::FewPrefixes,
            format!("{prefixes} prefixes came again, {MIN_PREFIXES} are needed"),
        );
    }
    (Affinity::Sticky, Vec::new())
}
