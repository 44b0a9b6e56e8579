//! What the self-test found.

use std::net::SocketAddr;

use serde::Serialize;

use super::Program;

/// Name and version of the report's form.
pub const SCHEMA: &str = "goodput.selftest/1";

/// One comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was compared.
    pub name: String,
    /// What was sent, or must hold.
    pub expected: String,
    /// What the agent says.
    pub observed: String,
    /// Whether it is right.
    pub ok: bool,
}

impl Check {
    /// Right when both are the same.
    pub(super) fn equal(
        name: impl Into<String>,
        expected: &dyn std::fmt::Display,
        observed: &dyn std::fmt::Display,
    ) -> Self {
        let (expected, observed) = (expected.to_string(), observed.to_string());
        Self { name: name.into(), ok: expected == observed, expected, observed }
    }
}

/// Everything that was compared; keys are written in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    schema: &'static str,
    /// Version of the agent.
    pub version: &'static str,
    /// Release of the kernel.
    pub kernel: String,
    /// Source that watched.
    pub source: &'static str,
    /// Addresses that were watched.
    pub endpoints: Vec<SocketAddr>,
    /// Every check was right.
    pub passed: bool,
    /// The checks, in order.
    pub checks: Vec<Check>,
    /// The kernel programs that watched.
    pub programs: Vec<Program>,
}

impl Report {
    pub(super) fn new(
        source: &'static str,
        endpoints: &[SocketAddr],
        checks: Vec<Check>,
        programs: Vec<Program>,
    ) -> Self {
        let kernel = nix::sys::utsname::uname();
        let kernel = kernel.map(|it| it.release().to_string_lossy().into_owned());
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            kernel: kernel.unwrap_or_default(),
            source,
            endpoints: endpoints.to_vec(),
            passed: !checks.is_empty() && checks.iter().all(|check| check.ok),
            checks,
            programs,
        }
    }
}
