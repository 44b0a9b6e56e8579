//! Counts of connections of real sockets, whatever happens to them.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command as Program, Stdio};
use std::thread;

use agent::inflight::{Certainty, ConnectionSource, Evidence};
use agent::sockdiag::NetlinkTables;
use agent::window::Reason;
use caps::CapSet;

use crate::rig::{Rig, config};
use crate::support::kernel_available;

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = listener.local_addr().unwrap();
    (listener, endpoint)
}

/// Both ends of so many connections.
fn connect(listener: &TcpListener, count: usize) -> Vec<(TcpStream, TcpStream)> {
    let endpoint = listener.local_addr().unwrap();
    let pair = |_| {
        let client = TcpStream::connect(endpoint).unwrap();
        (client, listener.accept().unwrap().0)
    };
    (0..count).map(pair).collect()
}

#[test]
fn an_agent_that_starts_amid_open_connections_counts_them_and_their_ends() {
    if !kernel_available("adopted connections") {
        return;
    }
    let (listener, endpoint) = listener();
    let mut older = connect(&listener, 50);
    let mut rig = Rig::over(&config(endpoint));
    let told = rig.gauge();
    assert_eq!((told.connections, told.agreement.adopted), (Some(50), 50));
    assert_eq!((told.source, told.evidence), (ConnectionSource::Tracepoint, Evidence::Socket));
    older.truncate(30);
    let younger = connect(&listener, 5);
    rig.wait_for(35);
    drop((older, younger));
    rig.wait_for(0);
    let told = rig.reconciled();
    assert_eq!((told.agreement.drift, told.agreement.corrections), (Some(0), 0));
}

#[test]
fn a_thousand_connections_churned_leave_no_drift() {
    if !kernel_available("churn") {
        return;
    }
    let (listener, endpoint) = listener();
    let mut rig = Rig::over(&config(endpoint));
    let server = thread::spawn(move || {
        for index in 0..1000 {
            let (stream, _) = listener.accept().unwrap();
            // Either side closes first.
            if index % 2 == 0 {
                drop(stream);
            } else {
                thread::spawn(move || std::io::copy(&mut &stream, &mut std::io::sink()));
            }
        }
        listener
    });
    let clients: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(move || {
                (0..250).for_each(|_| drop(TcpStream::connect(endpoint).unwrap()));
            })
        })
        .collect();
    while clients.iter().any(|client| !client.is_finished()) {
        rig.reconciled();
    }
    let listener = server.join().unwrap();
    rig.wait_for(0);
    let told = rig.reconciled();
    assert_eq!((told.agreement.drift, told.agreement.corrections), (Some(0), 0));
    assert!(told.agreement.reconciliations > 0);
    drop(listener);
}

/// A process that holds a connection; dropping it kills it.
struct Holder(Child);

impl Holder {
    fn new(endpoint: SocketAddr) -> Self {
        let script = format!(
            "exec 3<>/dev/tcp/{}/{}; echo connected; read -r never",
            endpoint.ip(),
            endpoint.port()
        );
        let mut bash = Program::new("bash");
        let child = bash.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "connected\n");
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn connections_of_killed_peers_count_until_the_server_lets_go() {
    if !kernel_available("killed peers") {
        return;
    }
    let (listener, endpoint) = listener();
    let mut rig = Rig::over(&config(endpoint));
    let holders: Vec<_> = (0..5).map(|_| Holder::new(endpoint)).collect();
    let servers: Vec<_> = (0..5).map(|_| listener.accept().unwrap().0).collect();
    rig.wait_for(5);
    drop(holders);
    let told = rig.reconciled();
    assert_eq!((told.connections, told.agreement.drift), (Some(5), Some(0)));
    drop(servers);
    rig.wait_for(0);
    assert_eq!(rig.reconciled().agreement.drift, Some(0));
}

#[test]
fn refused_connections_count_nowhere() {
    if !kernel_available("refused connections") {
        return;
    }
    // A socket that holds the port without listening.
    let holder = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    holder.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    let endpoint = holder.local_addr().unwrap().as_socket().unwrap();
    let mut rig = Rig::over(&config(endpoint));
    for _ in 0..20 {
        TcpStream::connect(endpoint).unwrap_err();
    }
    let told = rig.reconciled();
    assert_eq!((told.connections, told.agreement.drift), (Some(0), None));
    assert_eq!((told.source, told.certainty), (ConnectionSource::Packets, Certainty::Estimated));
    holder.listen(1).unwrap();
    let client = TcpStream::connect(endpoint).unwrap();
    let told = rig.reconciled();
    assert_eq!((told.connections, told.agreement.drift), (Some(1), Some(0)));
    assert_eq!(told.certainty, Certainty::Exact);
    drop(client);
}

#[test]
fn a_ring_that_overflows_costs_records_and_no_count() {
    if !kernel_available("tiny ring") {
        return;
    }
    let (listener, endpoint) = listener();
    let mut tiny = config(endpoint);
    tiny.ring_bytes = 4096;
    let mut rig = Rig::over(&tiny);
    let window = rig.open();
    let mut pairs = connect(&listener, 100);
    let told = rig.gauge();
    assert_eq!(told.connections, Some(100));
    assert!(told.agreement.resynchronisations > 0, "{told:?}");
    let closing = rig.close(&window);
    assert!(closing.counters.sockets.failed > 0, "{closing:?}");
    assert!(!closing.complete && closing.reasons.contains(&Reason::RingFull));
    assert!(!closing.reasons.contains(&Reason::ConnectionDrift), "{closing:?}");
    pairs.truncate(40);
    rig.wait_for(40);
    drop(pairs);
    rig.wait_for(0);
    assert_eq!(rig.reconciled().agreement.drift, Some(0));
}

#[test]
fn without_the_privilege_only_the_agents_own_namespace_is_listed_and_that_is_told() {
    let (_listener, endpoint) = listener();
    // Capabilities belong to the thread, and every test has its own.
    caps::clear(None, CapSet::Effective).unwrap();
    let tables = NetlinkTables::open(&[endpoint]).unwrap();
    assert_eq!(tables.namespaces().len(), 1);
    assert_eq!(tables.namespaces()[0].endpoints, [endpoint]);
    let missing = &tables.missing()[0];
    assert!(missing.what.contains("CAP_SYS_ADMIN"), "{missing:?}");
    assert!(missing.mend.contains("cap_sys_admin"), "{missing:?}");
}
