//! The address of LoxiLB's control plane.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// Where LoxiLB's rules are read, below its base path (LoxiLB REST API, `/netlox/v1`).
const RULES: &str = "/netlox/v1/config/loadbalancer/all";

/// A control plane, by address: the agent resolves no names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    address: SocketAddr,
}

/// A URL that names no control plane.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no control plane of LoxiLB: write http://127.0.0.1:11111 with an IP address and port"
)]
pub struct TargetError(String);

impl Target {
    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Path of the rules.
    #[must_use]
    pub fn path(&self) -> &'static str {
        RULES
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(url: &str) -> Result<Self, TargetError> {
        let rest = url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
        let rest = rest.map(|rest| rest.strip_suffix("/netlox/v1").unwrap_or(rest));
        let address = rest.and_then(|rest| rest.parse().ok());
        // What else the URL holds may be a secret, so that it is not repeated.
        let shown = || url.rsplit('@').next().unwrap_or_default().chars().take(80).collect();
        address.map(|address| Self { address }).ok_or_else(|| TargetError(shown()))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}", self.address)
    }
}
