//! Endpoints read back from LoxiLB, and kept current while the agent runs.

mod fetch;
mod rules;
mod status;
mod target;

pub use fetch::{FetchError, MAX_BODY, fetch};
pub use rules::{Found, RulesError, parse};
pub use status::{DiscoveryCounts, DiscoveryStatus, DiscoveryView};
pub use target::{Target, TargetError};

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, channel};

use crate::endpoint::Endpoint;

/// Where and how often rules are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// LoxiLB's control plane.
    pub target: Target,
    /// Time between two readings.
    pub interval: Duration,
}

/// A reading that failed: what was found before stays in force.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// No answer that can be used.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The answer holds no rules.
    #[error(transparent)]
    Rules(#[from] RulesError),
}

/// How long one reading may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reads the rules once.
///
/// # Errors
/// [`DiscoveryError`].
pub fn read(target: &Target) -> Result<Found, DiscoveryError> {
    Ok(parse(&fetch(target, PATIENCE)?)?)
}

/// Reads the rules every [`Plan::interval`] in a thread of its own, which ends once nobody receives.
///
/// # Errors
/// When the system refuses a thread.
pub fn poll(plan: Plan) -> std::io::Result<Receiver<Result<Found, DiscoveryError>>> {
    let (sender, receiver) = channel(1);
    std::thread::Builder::new().name("goodput-discover".to_owned()).spawn(move || {
        loop {
            std::thread::sleep(plan.interval);
            if sender.blocking_send(read(&plan.target)).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}

/// The configured endpoints, and the found ones besides. What is configured wins.
#[must_use]
pub fn merged(configured: &[Endpoint], found: &[Endpoint]) -> Vec<Endpoint> {
    let mut all: BTreeMap<_, _> = found.iter().map(|it| (it.address, it.role)).collect();
    all.extend(configured.iter().map(|it| (it.address, it.role)));
    all.into_iter().map(|(address, role)| Endpoint { address, role }).collect()
}

#[cfg(test)]
mod tests;
