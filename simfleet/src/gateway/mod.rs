//! A simulated gateway: an HTTP/1.1 proxy in user space with LoxiLB-shaped control plane.

mod counters;
mod disagg;
mod forward;
mod head;
mod log;
mod metrics;
mod relay;
mod rest;
mod route;
mod session;
mod upstream;

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::config::GatewayConfig;
use crate::error::FleetError;
use crate::fault::GatewayFault;
use crate::gateway::counters::Counters;
use crate::gateway::disagg::Prefill;
use crate::gateway::log::GatewayLog;
use crate::gateway::route::Router;

pub(crate) use rest::app;

/// What all connections of one gateway share.
pub(crate) struct Gateway {
    config: GatewayConfig,
    /// Where clients really connect, with the port that was taken.
    vip: SocketAddr,
    router: RwLock<Arc<Router>>,
    /// Where prompts are computed, when that is apart from decoding.
    prefill: RwLock<Option<Arc<Prefill>>>,
    counters: Counters,
    log: GatewayLog,
    fault: RwLock<Option<GatewayFault>>,
}

impl Gateway {
    /// A gateway on `vip` in front of `endpoints`.
    pub(crate) fn new(
        config: GatewayConfig,
        vip: SocketAddr,
        endpoints: Vec<SocketAddr>,
        prefill: Vec<SocketAddr>,
    ) -> Result<Arc<Self>, FleetError> {
        let log = GatewayLog::open(config.log_file.as_deref())?;
        log.line("INFO", "simfleet: simulated gateway, not LoxiLB");
        let sel = rest::sel(config.policy.algorithm);
        let (name, eps) = (config.policy.label(), endpoints.len());
        let rule =
            format!("[CP-DEBUG] AddLbRule: VIP={vip} mode=4 sel={sel} eps={eps} name={name}");
        log.line("INFO", &rule);
        let router = RwLock::new(Arc::new(Router::new(&config.policy, endpoints)));
        let prefill = RwLock::new(disagg::pool(prefill));
        let (counters, fault) = (Counters::default(), RwLock::new(config.fault));
        Ok(Arc::new(Self { config, vip, router, prefill, counters, log, fault }))
    }

    fn router(&self) -> Arc<Router> {
        Arc::clone(&self.router.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn prefill(&self) -> Option<Arc<Prefill>> {
        self.prefill.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Routes to these endpoints from the next request on; what the policy remembered is gone.
    fn set_endpoints(&self, endpoints: Vec<SocketAddr>, prefill: Vec<SocketAddr>) {
        let (vip, eps) = (self.vip, endpoints.len() + prefill.len());
        self.log.line("INFO", &format!("[CP-DEBUG] AddLbRule: VIP={vip} mode=4 eps={eps}"));
        let router = Arc::new(Router::new(&self.config.policy, endpoints));
        *self.router.write().unwrap_or_else(PoisonError::into_inner) = router;
        let prefill = disagg::pool(prefill);
        *self.prefill.write().unwrap_or_else(PoisonError::into_inner) = prefill;
    }

    pub(crate) fn set_fault(&self, fault: Option<GatewayFault>) {
        *self.fault.write().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    fn fault(&self) -> Option<GatewayFault> {
        *self.fault.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves every connection of `listener`; dropping the future ends them all.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener) {
        let mut sessions = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        sessions.spawn(session::run(Arc::clone(&self), stream, peer.ip()));
                    }
                    Err(e) => {
                        // Out of descriptors is the usual cause: retrying at once would only spin.
                        tracing::warn!(gateway = %self.config.name, "accept: {e}");
                        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    }
                },
                Some(_) = sessions.join_next() => {}
            }
        }
    }
}
