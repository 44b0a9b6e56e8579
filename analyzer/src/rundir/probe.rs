//! `probe/<arm>.json`: phase 2.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::GatewayFile;
use crate::records::Versioned;

/// How unevenly a burst's requests lay on the backends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Concentration {
    /// Largest over mean of the backends' time-weighted mean requests in flight.
    Ratio {
        /// 1 = even; the number of backends = all on one.
        ratio: f64,
        /// Time-weighted mean requests in flight of each backend.
        means: BTreeMap<String, f64>,
    },
    /// No request was in flight at any backend.
    Idle,
    /// No agent watched.
    NotObserved,
}

/// The probe of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeFile {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// Name of the arm.
    pub arm: String,
    /// Length of the burst, seconds.
    pub seconds: f64,
    /// Requests of the burst.
    pub requests: u64,
    /// Of these, delivered whole.
    pub completed: u64,
    /// Concentration by role of the endpoint.
    pub concentration: BTreeMap<String, Concentration>,
    /// Mode readback and counters around the burst.
    pub gateway: GatewayFile,
}

impl Versioned for ProbeFile {
    const SCHEMA: &'static str = "goodput.probe/1";
}
