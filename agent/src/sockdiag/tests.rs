//! Lists of real sockets of this test's own network namespace; needs no privilege.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::*;

fn tables(endpoint: SocketAddr) -> NetlinkTables {
    NetlinkTables::open(&[endpoint]).unwrap()
}

fn own(tables: &mut NetlinkTables, detail: Detail) -> NamespaceSockets {
    tables.dump(detail).unwrap().swap_remove(0)
}

fn one_family(listen: &str, connect: impl Fn(SocketAddr) -> SocketAddr) {
    let listener = TcpListener::bind(listen).unwrap();
    let endpoint = connect(listener.local_addr().unwrap());
    let mut tables = tables(endpoint);
    assert_eq!(tables.namespaces()[0].endpoints, [endpoint]);
    let clients: Vec<_> = (0..3).map(|_| TcpStream::connect(endpoint).unwrap()).collect();
    let found = own(&mut tables, Detail::Path);
    let mut peers: Vec<_> = found.connections.iter().map(|it| it.remote).collect();
    let mut expected: Vec<_> = clients.iter().map(|it| it.local_addr().unwrap()).collect();
    peers.sort_unstable();
    expected.sort_unstable();
    assert_eq!(peers, expected);
    let cookies: BTreeSet<_> = found.connections.iter().map(|it| it.cookie).collect();
    assert_eq!(cookies.len(), 3);
    for connection in &found.connections {
        assert_eq!((connection.local, connection.state), (endpoint, 1));
        let info = connection.info.unwrap();
        assert!(info.rttvar < Duration::from_secs(10) && info.total_retrans == 0, "{info:?}");
    }
    assert!(own(&mut tables, Detail::Identity).connections.iter().all(|it| it.info.is_none()));
}

#[test]
fn connections_of_every_kind_of_listener_are_listed() {
    one_family("127.0.0.1:0", |it| it);
    one_family("[::1]:0", |it| it);
    // A dual-stack listener takes IPv4 connections as IPv4-mapped ones.
    one_family("[::]:0", |it| SocketAddr::new("127.0.0.1".parse().unwrap(), it.port()));
    one_family("0.0.0.0:0", |it| SocketAddr::new("127.0.0.1".parse().unwrap(), it.port()));
}

#[test]
fn what_is_left_of_a_connection_that_the_endpoint_closed_first_is_not_listed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = listener.local_addr().unwrap();
    let mut tables = tables(endpoint);
    let client = TcpStream::connect(endpoint).unwrap();
    let (server, _) = listener.accept().unwrap();
    assert_eq!(own(&mut tables, Detail::Identity).connections.len(), 1);
    drop(server);
    // FIN_WAIT1 until the client's kernel has acknowledged; then a remainder in FIN_WAIT2.
    let deadline = Instant::now() + Duration::from_secs(20);
    while !own(&mut tables, Detail::Identity).connections.is_empty() {
        assert!(Instant::now() < deadline, "the remainder is still listed after 20 s");
    }
    drop(client);
}

#[test]
fn sockets_of_other_ports_are_left_out_by_the_kernel() {
    let listeners: Vec<_> = (0..6).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses: Vec<_> = listeners.iter().map(|it| it.local_addr().unwrap()).collect();
    let clients: Vec<_> = addresses.iter().map(|it| TcpStream::connect(it).unwrap()).collect();
    for watched in [1, 2, 5] {
        let ports: Vec<_> = addresses[..watched].iter().map(SocketAddr::port).collect();
        let found = netlink::Netlink::open().unwrap().sockets(&ports, Detail::Identity).unwrap();
        let mut seen: Vec<_> = found.iter().map(|it| (it.local.port(), it.state)).collect();
        let mut expected: Vec<_> = ports.iter().flat_map(|it| [(*it, 1), (*it, 10)]).collect();
        seen.sort_unstable();
        expected.sort_unstable();
        assert_eq!(seen, expected);
    }
    drop(clients);
}
