//! Sockets of the configured endpoints in every network namespace that holds one.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use super::namespaces;
use super::netlink::Netlink;
use super::wire::{DiagSocket, LISTEN};
use super::{ConnectionSocket, Detail, DiagError, NamespaceId, NamespaceSockets, SocketTables};
use crate::capture::tcx::Missing;

/// A netlink socket keeps its network namespace alive after the last process has left it: one that
/// shows nothing of any endpoint in so many dumps in a row (ten minutes of one a second) is let go.
const EMPTY_DUMPS: u32 = 600;

/// A namespace that is watched, as the status names it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct NamespaceView {
    /// Its inode.
    pub namespace: NamespaceId,
    /// It is the agent's own.
    pub own: bool,
    /// Endpoints that were served there when the agent started.
    pub endpoints: Vec<SocketAddr>,
}

#[derive(Debug)]
struct Namespace {
    id: NamespaceId,
    netlink: Netlink,
    /// Its addresses when it was opened; those of the agent's own namespace are read anew.
    addresses: Vec<IpAddr>,
    own: bool,
    empty_dumps: u32,
}

/// The host's tables.
#[derive(Debug)]
pub struct NetlinkTables {
    endpoints: Vec<SocketAddr>,
    ports: Vec<u16>,
    namespaces: Vec<Namespace>,
    views: Vec<NamespaceView>,
    missing: Vec<Missing>,
}

impl NetlinkTables {
    /// Opens the agent's own namespace and every other one in which a listening socket serves one of
    /// `endpoints` now. Must be called before the agent drops its capabilities and from the thread
    /// whose namespace is the agent's.
    ///
    /// # Errors
    /// When inet_diag can't be used in the agent's own namespace, or when this thread could not come
    /// back to it.
    pub fn open(endpoints: &[SocketAddr]) -> Result<Self, DiagError> {
        let mut tables = Self {
            endpoints: endpoints.to_vec(),
            ports: ports(endpoints),
            namespaces: Vec::new(),
            views: Vec::new(),
            missing: namespaces::preflight(),
        };
        let (own, home) = namespaces::own()?;
        let (namespace, sockets) = tables.look(own, true)?;
        tables.keep(namespace, &sockets);
        for (id, file) in namespaces::all().into_iter().filter(|(id, _)| *id != own) {
            match namespaces::visit(&file, &home, || tables.look(id, false)) {
                Ok((_, sockets)) if sockets.listening.is_empty() => {}
                Ok((namespace, sockets)) => tables.keep(namespace, &sockets),
                Err(error @ DiagError::Stranded { .. }) => return Err(error),
                Err(error) => {
                    tracing::debug!(namespace = id.0, %error, "a network namespace stays unseen");
                }
            }
        }
        Ok(tables)
    }

    /// Namespaces that hold an endpoint, and the agent's own.
    #[must_use]
    pub fn namespaces(&self) -> &[NamespaceView] {
        &self.views
    }

    /// What kept the agent from looking further.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// Opens the namespace that this thread is in.
    fn look(&self, id: NamespaceId, own: bool) -> Result<(Namespace, NamespaceSockets), DiagError> {
        let addresses = namespaces::addresses();
        let netlink = Netlink::open()?;
        let mut namespace = Namespace { id, netlink, addresses, own, empty_dumps: 0 };
        let sockets = namespace.dump(&self.endpoints, &self.ports, Detail::Identity)?;
        Ok((namespace, sockets))
    }

    fn keep(&mut self, namespace: Namespace, sockets: &NamespaceSockets) {
        self.views.push(NamespaceView {
            namespace: namespace.id,
            own: namespace.own,
            endpoints: sockets.listening.iter().copied().collect(),
        });
        self.namespaces.push(namespace);
    }
}

impl SocketTables for NetlinkTables {
    fn set_endpoints(&mut self, endpoints: &[SocketAddr]) {
        self.endpoints = endpoints.to_vec();
        self.ports = ports(endpoints);
    }

    fn dump(&mut self, detail: Detail) -> Result<Vec<NamespaceSockets>, DiagError> {
        let Self { namespaces, endpoints, ports, .. } = self;
        let dumps: Result<Vec<_>, _> =
            namespaces.iter_mut().map(|it| it.dump(endpoints, ports, detail)).collect();
        namespaces.retain(|namespace| namespace.own || namespace.empty_dumps < EMPTY_DUMPS);
        dumps
    }
}

/// Each port once.
fn ports(endpoints: &[SocketAddr]) -> Vec<u16> {
    let ports: BTreeSet<u16> = endpoints.iter().map(SocketAddr::port).collect();
    ports.into_iter().collect()
}

impl Namespace {
    fn dump(
        &mut self,
        endpoints: &[SocketAddr],
        ports: &[u16],
        detail: Detail,
    ) -> Result<NamespaceSockets, DiagError> {
        let sockets = self.netlink.sockets(ports, detail)?;
        if self.own {
            self.addresses = namespaces::addresses();
        }
        let found = sort(self.id, &sockets, endpoints, &self.addresses);
        let empty = found.listening.is_empty() && found.connections.is_empty();
        self.empty_dumps = if empty { self.empty_dumps.saturating_add(1) } else { 0 };
        Ok(found)
    }
}

/// Sorts what a namespace's dump says by what it means for `endpoints`.
fn sort(
    namespace: NamespaceId,
    sockets: &[DiagSocket],
    endpoints: &[SocketAddr],
    addresses: &[IpAddr],
) -> NamespaceSockets {
    let (listeners, others): (Vec<&DiagSocket>, Vec<_>) =
        sockets.iter().partition(|socket| socket.state == LISTEN);
    let listening = endpoints
        .iter()
        .filter(|endpoint| listeners.iter().any(|it| serves(it, endpoint, addresses)))
        .copied()
        .collect();
    let connections = others
        .into_iter()
        .filter(|socket| !socket.time_wait && endpoints.contains(&socket.local))
        .map(|socket| ConnectionSocket {
            local: socket.local,
            remote: socket.remote,
            state: socket.state,
            cookie: socket.cookie,
            info: socket.info,
        })
        .collect();
    NamespaceSockets { namespace, listening, connections }
}

/// Whether a connection to `endpoint` in this namespace would reach `listener`.
fn serves(listener: &DiagSocket, endpoint: &SocketAddr, addresses: &[IpAddr]) -> bool {
    if listener.local == *endpoint {
        return true;
    }
    let here = addresses.contains(&endpoint.ip()) || endpoint.ip().is_loopback();
    let family = match (listener.local.ip(), endpoint.ip()) {
        (IpAddr::V6(_), IpAddr::V4(_)) => !listener.v6_only,
        (listener, endpoint) => listener.is_ipv4() == endpoint.is_ipv4(),
    };
    let wildcard = listener.local.ip().is_unspecified() && listener.local.port() == endpoint.port();
    wildcard && here && family
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diag(state: u8, local: &str) -> DiagSocket {
        DiagSocket {
            state,
            local: local.parse().unwrap(),
            remote: "10.0.0.9:40000".parse().unwrap(),
            cookie: 1,
            time_wait: false,
            v6_only: false,
            info: None,
        }
    }

    fn sorted(sockets: &[DiagSocket]) -> NamespaceSockets {
        let endpoints = ["10.0.0.1:80", "10.0.0.2:80", "[::1]:80", "127.0.0.5:80"];
        let endpoints: Vec<SocketAddr> = endpoints.iter().map(|it| it.parse().unwrap()).collect();
        let addresses = ["10.0.0.1".parse().unwrap(), "::1".parse().unwrap()];
        sort(NamespaceId(1), sockets, &endpoints, &addresses)
    }

    fn listening(socket: DiagSocket) -> Vec<String> {
        sorted(&[socket]).listening.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_listener_serves_its_address_or_every_address_of_its_namespace() {
        assert_eq!(listening(diag(LISTEN, "10.0.0.2:80")), ["10.0.0.2:80"]);
        assert_eq!(listening(diag(LISTEN, "0.0.0.0:80")), ["10.0.0.1:80", "127.0.0.5:80"]);
        assert_eq!(listening(diag(LISTEN, "[::]:80")), ["10.0.0.1:80", "127.0.0.5:80", "[::1]:80"]);
        let v6_only = DiagSocket { v6_only: true, ..diag(LISTEN, "[::]:80") };
        assert_eq!(listening(v6_only), ["[::1]:80"]);
        assert!(listening(diag(LISTEN, "0.0.0.0:81")).is_empty());
        assert!(listening(diag(1, "10.0.0.1:80")).is_empty());
    }

    #[test]
    fn connections_are_those_at_an_endpoint_that_still_have_a_socket() {
        let remainder = DiagSocket { time_wait: true, ..diag(5, "10.0.0.1:80") };
        let elsewhere = diag(1, "10.0.0.7:80");
        let found = sorted(&[diag(1, "10.0.0.1:80"), remainder, elsewhere]);
        assert_eq!(found.connections.len(), 1);
        assert_eq!(found.connections[0].local.to_string(), "10.0.0.1:80");
    }
}
