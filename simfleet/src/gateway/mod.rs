//! A simulated gateway: an HTTP/1.1 proxy in user space with LoxiLB-shaped control plane.

mod counters;
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
use crate::gateway::log::GatewayLog;
use crate::gateway::route::Router;

pub(crate) use rest::app;

/// What all connections of one gateway share.
pub(crate) struct Gateway {
    config: GatewayConfig,
    /// Where clients really connect, with the port that was taken.
    vip: SocketAddr,
    router: Router,
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
    ) -> Result<Arc<Self>, FleetError> {
        let log = GatewayLog::open(config.log_file.as_deref())?;
        log.line("INFO", "simfleet: simulated gateway, not LoxiLB");
        let sel = rest::sel(config.policy.algorithm);
        let (name, eps) = (config.policy.label(), endpoints.len());
        let rule =
            format!("[CP-DEBUG] AddLbRule: VIP={vip} mode=4 sel={sel} eps={eps} name={name}");
        log.line("INFO", &rule);
        let router = Router::new(&config.policy, endpoints);
        let fault = RwLock::new(config.fault);
        Ok(Arc::new(Self { config, vip, router, counters: Counters::default(), log, fault }))
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
