//! How long connections are kept, on either side.

use std::num::NonZeroU64;
use std::time::Duration;

use serde::Deserialize;

/// Limits of a kept connection: table `keep_alive` of a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KeepAliveLimits {
    /// Requests that one connection may carry; the last one is answered with `Connection: close`.
    pub max_requests: Option<NonZeroU64>,
    /// Milliseconds without a request after which the server closes.
    pub idle_timeout_ms: Option<u64>,
}

impl KeepAliveLimits {
    /// Whether a connection ends with its `served`-th request.
    pub(crate) fn last(&self, served: u64) -> bool {
        self.max_requests.is_some_and(|most| served >= most.get())
    }

    /// The wait for the next request.
    pub(crate) fn idle(&self) -> Option<Duration> {
        self.idle_timeout_ms.map(Duration::from_millis)
    }
}

/// Kept connections of a gateway: table `[gateway.keep_alive]`. Without it every client connection
/// carries one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayKeepAlive {
    /// What becomes of the connection to the backend.
    #[serde(default)]
    pub upstream: Upstream,
    /// See [`KeepAliveLimits::max_requests`]; on the client's side.
    #[serde(default)]
    pub max_requests: Option<NonZeroU64>,
    /// See [`KeepAliveLimits::idle_timeout_ms`]; on the client's side.
    #[serde(default)]
    pub idle_timeout_ms: Option<u64>,
}

impl GatewayKeepAlive {
    /// The limits on the client's side.
    pub(crate) fn limits(&self) -> KeepAliveLimits {
        KeepAliveLimits { max_requests: self.max_requests, idle_timeout_ms: self.idle_timeout_ms }
    }
}

/// What becomes of the connection to a backend after an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Upstream {
    /// It stays with the client's connection: the next request there goes to the same backend without
    /// asking the policy, as in LoxiLB.
    #[default]
    Pinned,
    /// It goes to a pool of its endpoint, for any client's next request there.
    Pooled,
}
