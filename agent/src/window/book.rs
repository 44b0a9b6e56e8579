//! The windows that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use protocol::Nanos;
use serde::Serialize;

use super::counters::{Snapshot, WindowCounters};
use super::lease::{Expired, Lease};
use super::prefixes::PrefixBook;
use super::reason::{Reason, reasons};

/// Windows kept at a time.
pub const MAX_WINDOWS: usize = 16;
/// Bytes of observations kept, of all windows together.
const MAX_BYTES: usize = 512 * 1024 * 1024;

/// A call about a window that can't be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// No window has this id.
    #[error("no such window")]
    Unknown,
    /// Nobody called about the window for as long as its lease, so that it was given up.
    #[error("the window's lease ran out: nobody called about it for that long")]
    Expired,
    /// The window was closed before.
    #[error("the window is closed already")]
    Closed,
    /// The window hashes no prompts.
    #[error("the window was opened without prefix_salt: it hashes no prompts")]
    NoPrefixes,
    /// There are as many windows as are kept.
    #[error("{MAX_WINDOWS} windows are kept already")]
    Full,
    /// The worker has stopped.
    #[error("the agent is stopping")]
    Stopping,
}

/// What closing a window answers; keys are written in this order (`docs/agent-api.md`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Closing {
    /// Its id.
    pub window_id: String,
    /// Its label.
    pub label: String,
    /// When it was opened.
    pub opened_ns: Nanos,
    /// When it was closed.
    pub closed_ns: Nanos,
    /// Nothing was lost, unparsed, adopted or left open.
    pub complete: bool,
    /// Why it is not complete.
    pub reasons: BTreeSet<Reason>,
    /// Requests seen.
    pub observations: usize,
    /// Requests that were still in flight.
    pub open_requests: usize,
    /// Counters over the window.
    pub counters: WindowCounters,
}

/// One window.
#[derive(Debug)]
pub struct Window {
    /// What its user calls it.
    pub label: String,
    /// When it was opened.
    pub opened: Nanos,
    /// When closing it was asked for.
    pub closed: Option<Nanos>,
    /// It takes no more observations.
    pub finished: bool,
    /// It was closed, and nothing is missing in it.
    pub complete: bool,
    lease: Lease,
    expires: Nanos,
    base: Snapshot,
    rows: Vec<Arc<str>>,
    pub(super) prefixes: Option<PrefixBook>,
    pub(super) bytes: usize,
    pub(super) limited: bool,
    endpoints_changed: bool,
}

impl Window {
    /// Requests first seen at `stamp` belong to it.
    #[must_use]
    pub fn covers(&self, stamp: Nanos) -> bool {
        stamp >= self.opened && self.closed.is_none_or(|closed| stamp <= closed)
    }

    fn renew(&mut self, lease: Lease, now: Nanos) {
        self.lease = lease;
        self.expires = lease.end(now);
    }

    /// Nobody calls about it any more. Whoever closes it is still there until the answer is given.
    fn is_abandoned(&self, now: Nanos) -> bool {
        let closing = self.closed.is_some() && !self.finished;
        now >= self.expires && !closing
    }

    /// Its observations, as lines of `kernel.jsonl`.
    #[must_use]
    pub fn rows(&self) -> Vec<Arc<str>> {
        self.rows.clone()
    }
}

/// All windows, by number.
#[derive(Debug, Default)]
pub struct Windows {
    pub(super) windows: BTreeMap<u64, Window>,
    opened: u64,
    pub(super) bytes: usize,
    limit: Option<usize>,
    expired: Expired,
}

/// Name of a window in the API.
fn name(key: u64) -> String {
    format!("w{key}")
}

impl Windows {
    /// As the default, but keeping at most `limit` bytes of observations.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// Number of the window called `id`.
    ///
    /// # Errors
    /// [`WindowError::Unknown`], and [`WindowError::Expired`] where there was one.
    pub fn key(&self, id: &str) -> Result<u64, WindowError> {
        let key = id.strip_prefix('w').and_then(|number| number.parse().ok());
        let key = key.filter(|key| name(*key) == id).ok_or(WindowError::Unknown)?;
        if self.expired.contains(key) {
            return Err(WindowError::Expired);
        }
        self.windows.contains_key(&key).then_some(key).ok_or(WindowError::Unknown)
    }

    /// As [`Windows::key`], and begins the window's lease anew: somebody called about it.
    ///
    /// # Errors
    /// As [`Windows::key`].
    pub fn renew(&mut self, id: &str, now: Nanos) -> Result<u64, WindowError> {
        let key = self.key(id)?;
        if let Some(window) = self.windows.get_mut(&key) {
            window.renew(window.lease, now);
        }
        Ok(key)
    }

    /// Gives a window another lease, from now on.
    pub fn set_lease(&mut self, key: u64, lease: Lease, now: Nanos) {
        if let Some(window) = self.windows.get_mut(&key) {
            window.renew(lease, now);
        }
    }

    /// Forgets the windows whose leases have run out; answers their numbers.
    pub fn expire(&mut self, now: Nanos) -> Vec<u64> {
        let abandoned = self.windows.iter().filter(|(_, window)| window.is_abandoned(now));
        let keys: Vec<u64> = abandoned.map(|(key, _)| *key).collect();
        for key in &keys {
            // It is there: its number was just found.
            let _ = self.delete(*key);
            self.expired.add(*key);
        }
        keys
    }

    /// Windows given up since the agent started, because nobody called about them.
    #[must_use]
    pub fn expired(&self) -> u64 {
        self.expired.count()
    }

    /// Room for another window.
    ///
    /// # Errors
    /// [`WindowError::Full`].
    pub fn check_room(&self) -> Result<(), WindowError> {
        if self.windows.len() < MAX_WINDOWS { Ok(()) } else { Err(WindowError::Full) }
    }

    /// Opens a window; answers its number and name.
    ///
    /// # Errors
    /// [`WindowError::Full`].
    pub fn open(
        &mut self,
        label: String,
        opened: Nanos,
        base: Snapshot,
    ) -> Result<(u64, String), WindowError> {
        self.check_room()?;
        self.opened += 1;
        let window = Window {
            label,
            opened,
            closed: None,
            finished: false,
            complete: false,
            lease: Lease::OPEN,
            expires: Lease::OPEN.end(opened),
            base,
            rows: Vec::new(),
            prefixes: None,
            bytes: 0,
            limited: false,
            endpoints_changed: false,
        };
        self.windows.insert(self.opened, window);
        Ok((self.opened, name(self.opened)))
    }

    /// The window with number `key`.
    #[must_use]
    pub fn get(&self, key: u64) -> Option<&Window> {
        self.windows.get(&key)
    }

    /// Sets the end of a window; requests that begin later are not its own.
    ///
    /// # Errors
    /// [`WindowError::Closed`] the second time.
    pub fn set_end(&mut self, key: u64, closed: Nanos) -> Result<(), WindowError> {
        let window = self.windows.get_mut(&key).ok_or(WindowError::Unknown)?;
        if window.closed.is_some() {
            return Err(WindowError::Closed);
        }
        window.closed = Some(closed);
        Ok(())
    }

    pub(super) fn most_bytes(&self) -> usize {
        self.limit.unwrap_or(MAX_BYTES)
    }

    /// Gives an observation to every window that it belongs to.
    pub fn add(&mut self, seen: Nanos, row: &Arc<str>) {
        let limit = self.most_bytes();
        for window in self.windows.values_mut().filter(|it| !it.finished && it.covers(seen)) {
            if self.bytes + row.len() > limit {
                window.limited = true;
                continue;
            }
            self.bytes += row.len();
            window.bytes += row.len();
            window.rows.push(Arc::clone(row));
        }
    }

    /// The endpoints were changed: no window that is open has seen all of them all the time.
    pub fn endpoints_changed(&mut self) {
        for window in self.windows.values_mut().filter(|it| !it.finished) {
            window.endpoints_changed = true;
        }
    }

    /// Closes a window for good.
    ///
    /// # Errors
    /// [`WindowError::Unknown`].
    pub fn close(
        &mut self,
        key: u64,
        now: &Snapshot,
        open_requests: usize,
        also: impl IntoIterator<Item = Reason>,
    ) -> Result<Closing, WindowError> {
        let window = self.windows.get_mut(&key).ok_or(WindowError::Unknown)?;
        window.finished = true;
        let counters = WindowCounters::between(&window.base, now);
        let mut reasons = reasons(&counters);
        reasons.extend(also);
        reasons.extend(window.limited.then_some(Reason::MemoryLimit));
        reasons.extend(window.endpoints_changed.then_some(Reason::EndpointsChanged));
        reasons.extend((open_requests > 0).then_some(Reason::OpenRequests));
        window.complete = reasons.is_empty();
        Ok(Closing {
            window_id: name(key),
            label: window.label.clone(),
            opened_ns: window.opened,
            closed_ns: window.closed.unwrap_or(window.opened),
            complete: reasons.is_empty(),
            reasons,
            observations: window.rows.len(),
            open_requests,
            counters,
        })
    }

    /// Windows kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.windows.len()
    }

    /// No window is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Bytes of observations kept.
    #[must_use]
    pub fn bytes_kept(&self) -> usize {
        self.bytes
    }

    /// Forgets a window.
    ///
    /// # Errors
    /// [`WindowError::Unknown`].
    pub fn delete(&mut self, key: u64) -> Result<(), WindowError> {
        let window = self.windows.remove(&key).ok_or(WindowError::Unknown)?;
        self.bytes -= window.bytes;
        Ok(())
    }
}
