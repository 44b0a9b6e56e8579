//! Starts a fleet and holds it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use serde::Serialize;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::backend::Backend;
use crate::config::{BackendConfig, EndpointRef, FleetConfig, GatewayConfig};
use crate::error::FleetError;
use crate::fault::{BackendFault, GatewayFault};
use crate::gateway::{self, Gateway};
use crate::model::ModelStats;
use crate::request_log::RequestLog;

/// Connections that may wait to be accepted: a burst of a whole trace must not be refused.
const BACKLOG: i32 = 4_096;

/// Starts fleets.
#[derive(Debug)]
pub struct Fleet;

/// A running fleet. Dropping it closes every socket and ends every task.
pub struct FleetHandle {
    ready: Ready,
    backends: BTreeMap<String, Arc<Backend>>,
    gateways: BTreeMap<String, Arc<Gateway>>,
    /// Bound but not listening: backends that refuse connections.
    refusing: Vec<Socket>,
    tasks: JoinSet<()>,
}

/// What listens where: the line that `simfleet run` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// Always true.
    pub ready: bool,
    /// Always true: nothing here is a real engine or gateway.
    pub simulator: bool,
    /// The backends in the order of the configuration.
    pub backends: Vec<BackendInfo>,
    /// The gateways in the order of the configuration.
    pub gateways: Vec<GatewayInfo>,
}

/// Where a backend listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackendInfo {
    /// Its name.
    pub name: String,
    /// Its address, with the port that was taken.
    pub addr: SocketAddr,
    /// The model it serves.
    pub model: String,
}

/// Where a gateway listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GatewayInfo {
    /// Its name.
    pub name: String,
    /// Where clients connect.
    pub vip: SocketAddr,
    /// Its control plane.
    pub rest: SocketAddr,
    /// The policy's label.
    pub policy: String,
}

impl Fleet {
    /// Listens on every address and serves on the current Tokio runtime. On return all sockets listen.
    ///
    /// # Errors
    /// When the configuration contradicts itself, an address cannot be listened on, or a log file
    /// cannot be opened. Nothing keeps running then.
    pub async fn start(config: FleetConfig) -> Result<FleetHandle, FleetError> {
        config.validate()?;
        let log = RequestLog::open(config.request_log.as_deref())?;
        let mut fleet = FleetHandle::empty();
        for backend in config.backends {
            fleet.start_backend(backend, log.clone())?;
        }
        for gateway in config.gateways {
            fleet.start_gateway(gateway)?;
        }
        // Let every accept loop run once, so that the first request meets a waiting server.
        tokio::task::yield_now().await;
        Ok(fleet)
    }
}

impl FleetHandle {
    fn empty() -> Self {
        let (backends, gateways) = (Vec::new(), Vec::new());
        Self {
            ready: Ready { ready: true, simulator: true, backends, gateways },
            backends: BTreeMap::new(),
            gateways: BTreeMap::new(),
            refusing: Vec::new(),
            tasks: JoinSet::new(),
        }
    }

    /// What listens where.
    #[must_use]
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Where the `i`-th backend listens.
    #[must_use]
    pub fn backend(&self, i: usize) -> Option<&BackendInfo> {
        self.ready.backends.get(i)
    }

    /// Where the `i`-th gateway listens.
    #[must_use]
    pub fn gateway(&self, i: usize) -> Option<&GatewayInfo> {
        self.ready.gateways.get(i)
    }

    /// The model totals of the backend called `name`.
    #[must_use]
    pub fn stats(&self, name: &str) -> Option<ModelStats> {
        self.backends.get(name).map(|b| b.engine.stats())
    }

    /// Sets or clears the fault of a backend from its next request on; false when none has the name.
    pub fn set_backend_fault(&self, name: &str, fault: Option<BackendFault>) -> bool {
        self.backends.get(name).map(|b| b.set_fault(fault)).is_some()
    }

    /// Sets or clears the fault of a gateway from its next request on; false when none has the name.
    pub fn set_gateway_fault(&self, name: &str, fault: Option<GatewayFault>) -> bool {
        self.gateways.get(name).map(|g| g.set_fault(fault)).is_some()
    }

    fn start_backend(&mut self, config: BackendConfig, log: RequestLog) -> Result<(), FleetError> {
        let place = format!("backend {:?}", config.name);
        let socket = bind(&place, config.listen)?;
        let addr = socket.local_addr()?.as_socket().unwrap_or(config.listen);
        let (name, model) = (config.name.clone(), config.engine.model.clone());
        let refuses = config.fault == Some(BackendFault::Refuse);
        let backend = Backend::new(config, log);
        if refuses {
            self.refusing.push(socket);
        } else {
            let listener = listen(&place, addr, socket)?;
            self.tasks.spawn(Arc::clone(&backend).serve(listener));
        }
        let engine = backend.engine.clone();
        self.tasks.spawn(async move {
            if let Err(e) = engine.drive().await {
                tracing::error!("engine clock: {e}");
            }
        });
        self.backends.insert(name.clone(), backend);
        self.ready.backends.push(BackendInfo { name, addr, model });
        Ok(())
    }

    fn start_gateway(&mut self, config: GatewayConfig) -> Result<(), FleetError> {
        let place = format!("gateway {:?}", config.name);
        let (vip, vip_listener) = listen_on(&format!("{place}.vip"), config.vip)?;
        let (rest, rest_listener) = listen_on(&format!("{place}.rest"), config.rest)?;
        let endpoints = self.resolve(&config.endpoints);
        let prefill = self.resolve(&config.prefill);
        let (name, policy) = (config.name.clone(), config.policy.label().to_owned());
        let gateway = Gateway::new(config, vip, endpoints, prefill)?;
        let app = gateway::app(Arc::clone(&gateway));
        self.tasks.spawn(Arc::clone(&gateway).serve(vip_listener));
        self.tasks.spawn(async move {
            if let Err(e) = axum::serve(rest_listener, app).await {
                tracing::error!("control plane: {e}");
            }
        });
        self.gateways.insert(name.clone(), gateway);
        self.ready.gateways.push(GatewayInfo { name, vip, rest, policy });
        Ok(())
    }

    fn resolve(&self, endpoints: &[EndpointRef]) -> Vec<SocketAddr> {
        let addr_of = |name: &str| self.ready.backends.iter().find(|b| b.name == name);
        let resolve = |endpoint: &EndpointRef| match endpoint {
            EndpointRef::Address(addr) => Some(*addr),
            EndpointRef::Backend(name) => addr_of(name).map(|b| b.addr),
        };
        endpoints.iter().filter_map(resolve).collect()
    }
}

fn listen_on(place: &str, addr: SocketAddr) -> Result<(SocketAddr, TcpListener), FleetError> {
    let socket = bind(place, addr)?;
    let addr = socket.local_addr()?.as_socket().unwrap_or(addr);
    Ok((addr, listen(place, addr, socket)?))
}

fn bind(place: &str, addr: SocketAddr) -> Result<Socket, FleetError> {
    let bound = || {
        let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
        // A restart must not wait for connections of the last run that linger in TIME_WAIT.
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&addr.into())?;
        Ok(socket)
    };
    bound().map_err(|source| FleetError::Listen { place: place.to_owned(), addr, source })
}

fn listen(place: &str, addr: SocketAddr, socket: Socket) -> Result<TcpListener, FleetError> {
    let listening = || {
        socket.listen(BACKLOG)?;
        TcpListener::from_std(socket.into())
    };
    listening().map_err(|source| FleetError::Listen { place: place.to_owned(), addr, source })
}
