//! Chooses endpoints, and keeps what choosing needs: requests in flight and who is down.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::upstream::Pool;
use crate::blocks::Tokenizer;
use crate::config::PolicyConfig;
use crate::openai::CompletionRequest;
use crate::policy::{Choice, EndpointLoad, Policy, Prompt, RequestView, build};

/// How long an endpoint that refused a connection is left out.
const DOWN_FOR: Duration = Duration::from_secs(2);

/// A server behind the gateway.
pub(super) struct Endpoint {
    pub(super) addr: SocketAddr,
    in_flight: AtomicUsize,
    /// Connections made.
    pub(super) connections: AtomicU64,
    /// Bytes sent to it and received from it.
    pub(super) bytes: AtomicU64,
    down_since: Mutex<Option<Instant>>,
    /// Kept connections.
    pub(super) pool: Pool,
}

/// One request's share of an endpoint's load; ends when dropped.
pub(super) struct InFlight(Arc<Endpoint>);

/// The endpoints and the policy over them.
pub(super) struct Router {
    pub(super) endpoints: Vec<Arc<Endpoint>>,
    policy: Mutex<Box<dyn Policy>>,
    tokenizer: Tokenizer,
}

impl Endpoint {
    pub(super) fn new(addr: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            addr,
            in_flight: AtomicUsize::new(0),
            connections: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            down_since: Mutex::new(None),
            pool: Pool::default(),
        })
    }

    /// False for a while after it refused a connection.
    pub(super) fn up(&self) -> bool {
        self.down().is_none_or(|since| since.elapsed() >= DOWN_FOR)
    }

    pub(super) fn mark(&self, up: bool) {
        *self.down() = (!up).then(Instant::now);
    }

    fn down(&self) -> MutexGuard<'_, Option<Instant>> {
        self.down_since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InFlight {
    pub(super) fn new(endpoint: &Arc<Endpoint>) -> Self {
        endpoint.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(endpoint))
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.0
    }

    pub(super) fn shared(&self) -> &Arc<Endpoint> {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Router {
    pub(super) fn new(config: &PolicyConfig, endpoints: Vec<SocketAddr>) -> Self {
        Self {
            policy: Mutex::new(build(config, endpoints.len())),
            endpoints: endpoints.into_iter().map(Endpoint::new).collect(),
            tokenizer: config.tokenizer(),
        }
    }

    /// Chooses an endpoint that is up and not in `tried`, and counts the request as in flight there.
    pub(super) fn choose(
        &self,
        request: &Inspected,
        tried: &[usize],
    ) -> Option<(Choice, InFlight)> {
        // The lock spans choice and count: two requests must not both see the same idle endpoint.
        let mut policy = self.policy();
        let load = |(i, e): (usize, &Arc<Endpoint>)| EndpointLoad {
            in_flight: e.in_flight.load(Ordering::Relaxed),
            usable: e.up() && !tried.contains(&i),
        };
        let loads: Vec<_> = self.endpoints.iter().enumerate().map(load).collect();
        let choice = policy.choose(request.view(), &loads)?;
        let endpoint = self.endpoints.get(choice.endpoint)?;
        Some((choice, InFlight::new(endpoint)))
    }

    /// What the policy is told of a completion request's body.
    pub(super) fn inspect(&self, body: &CompletionRequest) -> InspectedPrompt {
        let prompt = body.prompt().unwrap_or_default();
        InspectedPrompt::Blocks(self.tokenizer.blocks(prompt.as_bytes()))
    }

    /// Blocks that the policy remembers per endpoint.
    pub(super) fn index_blocks(&self) -> Vec<usize> {
        self.policy().index_blocks()
    }

    fn policy(&self) -> MutexGuard<'_, Box<dyn Policy>> {
        self.policy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The owned form of [`RequestView`].
pub(super) struct Inspected {
    pub(super) prompt: InspectedPrompt,
    pub(super) session: Option<String>,
    pub(super) source: IpAddr,
}

impl Inspected {
    fn view(&self) -> RequestView<'_> {
        RequestView {
            prompt: self.prompt.as_prompt(),
            session: self.session.as_deref(),
            source: self.source,
        }
    }
}

/// The owned form of [`Prompt`].
pub(super) enum InspectedPrompt {
    None,
    Unread,
    Blocks(Vec<crate::blocks::BlockHash>),
}

impl InspectedPrompt {
    fn as_prompt(&self) -> Prompt<'_> {
        match self {
            Self::None => Prompt::None,
            Self::Unread => Prompt::Unread,
            Self::Blocks(blocks) => Prompt::Blocks(blocks),
        }
    }
}
