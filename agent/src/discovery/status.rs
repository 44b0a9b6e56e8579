//! What discovery has done so far, for the status and `/metrics`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use protocol::Nanos;
use serde::Serialize;

use super::Target;

/// Readings by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiscoveryCounts {
    /// Other endpoints were found and are watched.
    pub applied: u64,
    /// The same endpoints were found.
    pub unchanged: u64,
    /// Nothing could be read or applied: the old endpoints stay.
    pub failed: u64,
    /// Endpoints found by the last reading that was good.
    pub endpoints: u64,
}

/// What discovery has done so far. Keys are written in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiscoveryView {
    url: String,
    interval_ms: u64,
    applied: u64,
    unchanged: u64,
    failed: u64,
    last_good_ns: Option<Nanos>,
    endpoints: u64,
    ignored: u64,
    failing: bool,
    last_error: Option<String>,
}

/// Shared between the readings and the API.
#[derive(Debug)]
pub struct DiscoveryStatus(Mutex<DiscoveryView>);

/// A hostile answer must not fill the status.
const MAX_ERROR: usize = 300;

impl DiscoveryStatus {
    /// Nothing was read yet.
    #[must_use]
    pub fn new(target: &Target, interval: std::time::Duration) -> Self {
        Self(Mutex::new(DiscoveryView {
            url: target.to_string(),
            interval_ms: u64::try_from(interval.as_millis()).unwrap_or(u64::MAX),
            applied: 0,
            unchanged: 0,
            failed: 0,
            last_good_ns: None,
            endpoints: 0,
            ignored: 0,
            failing: false,
            last_error: None,
        }))
    }

    /// A reading was good.
    pub fn good(&self, at: Nanos, found: &super::Found, changed: bool) {
        let mut view = self.view_mut();
        if changed {
            view.applied += 1;
        } else {
            view.unchanged += 1;
        }
        view.last_good_ns = Some(at);
        view.endpoints = found.endpoints.len() as u64;
        view.ignored = found.ignored as u64;
        view.failing = false;
    }

    /// A reading failed, or could not be applied. True when the one before was good.
    pub fn failed(&self, error: &str) -> bool {
        let mut view = self.view_mut();
        view.failed += 1;
        view.last_error = Some(error.chars().take(MAX_ERROR).collect());
        !std::mem::replace(&mut view.failing, true)
    }

    /// As it is now.
    #[must_use]
    pub fn view(&self) -> DiscoveryView {
        self.view_mut().clone()
    }

    /// Readings by outcome.
    #[must_use]
    pub fn counts(&self) -> DiscoveryCounts {
        let view = self.view_mut();
        DiscoveryCounts {
            applied: view.applied,
            unchanged: view.unchanged,
            failed: view.failed,
            endpoints: view.endpoints,
        }
    }

    fn view_mut(&self) -> MutexGuard<'_, DiscoveryView> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
