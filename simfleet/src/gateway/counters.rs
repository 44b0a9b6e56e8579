//! What the gateway counts. A series does not exist until its first use, as in LoxiLB.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::policy::{Choice, Lookup};

/// One state of all counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Client connections open now.
    pub(super) active_connections: u64,
    /// Streamed completion requests.
    pub(super) ai_requests: u64,
    /// Lookups that named an endpoint, by endpoint index.
    pub(super) hits: BTreeMap<usize, u64>,
    /// Lookups that fell through to the fallback.
    pub(super) fallthrough: u64,
    /// The same, by reason.
    pub(super) miss_reasons: BTreeMap<&'static str, u64>,
    /// Answers by class of status, such as `2xx`.
    pub(super) responses: BTreeMap<String, u64>,
    /// Backend answers carried to their end.
    pub(super) relayed: u64,
}

#[derive(Default)]
pub(super) struct Counters(Mutex<Totals>);

/// An open client connection; ends when dropped.
pub(super) struct ActiveConnection<'a>(&'a Counters);

impl Drop for ActiveConnection<'_> {
    fn drop(&mut self) {
        self.0.totals().active_connections -= 1;
    }
}

impl Counters {
    pub(super) fn connection(&self) -> ActiveConnection<'_> {
        self.totals().active_connections += 1;
        ActiveConnection(self)
    }

    pub(super) fn ai_request(&self) {
        self.totals().ai_requests += 1;
    }

    pub(super) fn relayed(&self) {
        self.totals().relayed += 1;
    }

    pub(super) fn response(&self, status: u16) {
        let class = format!("{}xx", status / 100);
        *self.totals().responses.entry(class).or_default() += 1;
    }

    pub(super) fn lookup(&self, choice: Choice) {
        let mut totals = self.totals();
        match choice.lookup {
            Lookup::NotAsked => {}
            Lookup::Hit => *totals.hits.entry(choice.endpoint).or_default() += 1,
            Lookup::Miss(reason) => {
                totals.fallthrough += 1;
                *totals.miss_reasons.entry(reason.as_str()).or_default() += 1;
            }
        }
    }

    pub(super) fn snapshot(&self) -> Totals {
        self.totals().clone()
    }

    fn totals(&self) -> MutexGuard<'_, Totals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
