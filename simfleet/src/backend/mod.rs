//! A simulated inference server.

mod completion;
mod faults;
mod pages;
mod session;

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::config::BackendConfig;
use crate::engine::Engine;
use crate::fault::BackendFault;
use crate::request_log::RequestLog;

pub(crate) use session::{Next, Session};

/// What all connections of one backend share.
pub(crate) struct Backend {
    config: BackendConfig,
    pub(crate) engine: Engine,
    log: RequestLog,
    fault: RwLock<Option<BackendFault>>,
}

impl Backend {
    pub(crate) fn new(config: BackendConfig, log: RequestLog) -> Arc<Self> {
        let engine = Engine::new(config.engine.params());
        let fault = RwLock::new(config.fault.clone());
        Arc::new(Self { config, engine, log, fault })
    }

    pub(crate) fn set_fault(&self, fault: Option<BackendFault>) {
        *self.fault.write().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    fn fault(&self) -> Option<BackendFault> {
        self.fault.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves every connection of `listener`; dropping the future ends them all.
    pub(crate) async fn serve(self: Arc<Self>, listener: TcpListener) {
        let mut sessions = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        sessions.spawn(session::run(Arc::clone(&self), stream, peer));
                    }
                    Err(e) => self.accept_failed(&e).await,
                },
                Some(_) = sessions.join_next() => {}
            }
        }
    }

    /// Out of descriptors is the usual cause: retrying at once would only spin.
    async fn accept_failed(&self, error: &std::io::Error) {
        tracing::warn!(backend = %self.config.name, "accept: {error}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Who is at the other end, for log lines.
type Peer = SocketAddr;
