//! `health.json`: phase 0.

use serde::{Deserialize, Serialize};

use crate::records::Versioned;

/// One streamed completion through a VIP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VipHealth {
    /// Name of the arm.
    pub arm: String,
    /// Base URL.
    pub vip: String,
    /// Delivered whole.
    pub ok: bool,
    /// HTTP status, when one came.
    pub status: Option<u16>,
    /// Outcome class.
    pub class: String,
    /// Why it is not ok.
    pub detail: String,
}

/// The model list of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendHealth {
    /// address:port.
    pub address: String,
    /// It answered with at least one model.
    pub ok: bool,
    /// Model names.
    pub models: Vec<String>,
    /// Largest context it advertises, tokens.
    pub max_model_len: Option<u64>,
    /// Why it is not ok.
    pub detail: String,
}

/// What served before the first measured request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthFile {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// Every target is ok.
    pub ok: bool,
    /// One entry an arm.
    pub vips: Vec<VipHealth>,
    /// One entry a backend.
    pub backends: Vec<BackendHealth>,
}

impl Versioned for HealthFile {
    const SCHEMA: &'static str = "goodput.health/1";
}
