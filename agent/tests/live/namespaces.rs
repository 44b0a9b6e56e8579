//! Endpoints in other network namespaces than the agent's.

use std::net::SocketAddr;

use agent::inflight::{Certainty, ConnectionSource};

use crate::namespace::Namespace;
use crate::rig::{Rig, config};
use crate::support::kernel_available;

#[test]
fn an_endpoint_in_another_namespace_is_adopted_and_reconciled() {
    if !kernel_available("endpoint in a namespace") {
        return;
    }
    let namespace = Namespace::new("one");
    let listener = namespace.listen("127.0.0.1:0".parse().unwrap());
    let endpoint = listener.local_addr().unwrap();
    let older = namespace.connect(endpoint);
    let mut rig = Rig::over(&config(endpoint));
    assert_eq!(rig.gauge().connections, Some(1));
    let younger = namespace.connect(endpoint);
    let told = rig.reconciled();
    assert_eq!((told.connections, told.agreement.adopted), (Some(2), 1));
    assert_eq!((told.agreement.drift, told.certainty), (Some(0), Certainty::Exact));
    drop((older, younger, listener));
    rig.wait_for(0);
}

#[test]
fn one_address_in_two_namespaces_is_unknown() {
    if !kernel_available("two namespaces") {
        return;
    }
    let (one, two) = (Namespace::new("first"), Namespace::new("second"));
    let listener = one.listen("0.0.0.0:0".parse().unwrap());
    let port = listener.local_addr().unwrap().port();
    let endpoint = SocketAddr::new("127.0.0.1".parse().unwrap(), port);
    let twin = two.listen(endpoint);
    let mut rig = Rig::over(&config(endpoint));
    let client = one.connect(endpoint);
    let told = rig.reconciled();
    assert_eq!((told.source, told.connections), (ConnectionSource::Unknown, None));
    assert_eq!((told.certainty, told.agreement.drift), (Certainty::Unknown, None));
    drop((client, listener, twin));
}

#[test]
fn a_half_open_connection_counts_as_long_as_its_socket() {
    if !kernel_available("half-open connection") {
        return;
    }
    let (server, peer) = (Namespace::new("server"), Namespace::new("peer"));
    server.ip(&["link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", &peer.0]);
    for (namespace, device, address) in
        [(&server, "v0", "198.18.7.1/24"), (&peer, "v1", "198.18.7.2/24")]
    {
        namespace.ip(&["address", "add", address, "dev", device]);
        namespace.ip(&["link", "set", device, "up"]);
    }
    let listener = server.listen("198.18.7.1:0".parse().unwrap());
    let endpoint = listener.local_addr().unwrap();
    let mut rig = Rig::over(&config(endpoint));
    let client = peer.connect(endpoint);
    let (accepted, _) = listener.accept().unwrap();
    rig.wait_for(1);
    server.ip(&["link", "set", "v0", "down"]);
    // Its FIN goes nowhere.
    drop(client);
    let told = rig.reconciled();
    assert_eq!((told.connections, told.agreement.drift), (Some(1), Some(0)));
    server.ip(&["link", "delete", "v0"]);
    let told = rig.reconciled();
    assert_eq!((told.connections, told.agreement.drift), (Some(1), Some(0)));
    drop((accepted, listener));
}
