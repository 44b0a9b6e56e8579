//! Bytes that pass several watched interfaces count once, whatever the kernel makes of segments on the
//! way (GRO on one, GSO on the other).

use std::net::{IpAddr, SocketAddr};

use agent::capture::tcx::{InterfaceRef, Method, TcxConfig};
use serde_json::Value;

use crate::http::{exchange, request, serve, stream};
use crate::namespace::Namespace;
use crate::rig::Rig;
use crate::support::for_each_method;

const REQUESTS: usize = 3;
/// More than the agent copies of a request.
const BODY: usize = 100_000;
const TOKENS: usize = 3000;

/// A client and a server behind a bridge, each in a namespace of its own, and the agent on the
/// bridge's host.
struct Bridged {
    client: Namespace,
    host: Namespace,
    server: Namespace,
}

impl Bridged {
    fn new() -> Self {
        let [client, host, server] = ["client", "bridge", "server"].map(Namespace::new);
        host.ip(&["link", "add", "br0", "type", "bridge"]);
        host.ip(&["address", "add", "198.18.8.1/24", "dev", "br0"]);
        host.ip(&["link", "set", "br0", "up"]);
        for (guest, port, address) in
            [(&client, "p0", "198.18.8.2/24"), (&server, "p1", "198.18.8.3/24")]
        {
            host.ip(&[
                "link", "add", port, "type", "veth", "peer", "name", "e0", "netns", &guest.0,
            ]);
            host.ip(&["link", "set", port, "master", "br0", "up"]);
            guest.ip(&["address", "add", address, "dev", "e0"]);
            guest.ip(&["link", "set", "e0", "up"]);
        }
        Self { client, host, server }
    }
}

/// What passes between `client` and a server in `server`, as an agent in `watcher` tells it.
fn assert_each_byte_counts_once(
    (client, server, watcher): (&Namespace, &Namespace, &Namespace),
    ip: &str,
    interfaces: &[&str],
    method: Method,
) {
    let at = SocketAddr::new(ip.parse::<IpAddr>().unwrap(), 0);
    let listener = server.listen(at);
    let endpoint = listener.local_addr().unwrap();
    let references = interfaces.iter().map(|it| InterfaceRef::Name((*it).to_owned())).collect();
    let config = TcxConfig { method: Some(method), ..TcxConfig::new(references, vec![endpoint]) };
    let mut rig = watcher.inside(|| Rig::over(&config));
    let window = watcher.inside(|| rig.open());

    let (request, parts) = (request(BODY), stream(TOKENS));
    let response_bytes = parts.iter().map(String::len).sum();
    let serving = serve(listener, 1, &parts);
    let mut connection = client.connect(endpoint);
    for _ in 0..REQUESTS {
        exchange(&mut connection, &request, response_bytes);
        watcher.inside(|| rig.poll());
    }
    drop(connection);
    serving.join().unwrap();

    let closing = watcher.inside(|| rig.close(&window));
    assert!(closing.complete, "{interfaces:?} {closing:?}");
    let sent = REQUESTS * (request.len() + response_bytes);
    assert_eq!(closing.counters.payload_bytes, u64::try_from(sent).unwrap(), "{interfaces:?}");
    let rows = rig.rows(&window);
    assert_eq!(rows.len(), REQUESTS);
    for row in &rows {
        let bytes = [&row["request_bytes"], &row["response_bytes"]];
        assert_eq!(bytes, [&Value::from(request.len()), &Value::from(response_bytes)]);
        assert_eq!((&row["outcome"], &row["framing"]), (&"ok".into(), &"valid".into()));
        assert_eq!(row["token_events"], TOKENS);
        // What a busy host's TCP sends again is told once, however many interfaces show it.
        assert_eq!(row["request_retransmits"], row["request_socket_retransmits"], "{row}");
        assert_eq!(row["response_retransmits"], row["response_socket_retransmits"], "{row}");
    }
}

#[test]
fn a_byte_that_passes_two_interfaces_counts_once() {
    for_each_method("bridged", |method| {
        let net = Bridged::new();
        let through = (&net.client, &net.server, &net.host);
        for interfaces in [&["p0"][..], &["p0", "p1"], &["p0", "p1", "br0"]] {
            assert_each_byte_counts_once(through, "198.18.8.3", interfaces, method);
        }
        // To the bridge's host itself: the port and the bridge both see a packet.
        let to_host = (&net.client, &net.host, &net.host);
        for interfaces in [&["p0", "br0"][..], &["br0", "p0"]] {
            assert_each_byte_counts_once(to_host, "198.18.8.1", interfaces, method);
        }
        // Within the host: lo sees each packet leave and come.
        let within = (&net.host, &net.host, &net.host);
        assert_each_byte_counts_once(within, "198.18.8.1", &["lo", "br0"], method);
    });
}

#[test]
fn a_byte_of_lo_counts_once_beside_other_interfaces() {
    for_each_method("lo", |method| {
        let host = Namespace::new("ends");
        host.ip(&["link", "add", "a0", "type", "veth", "peer", "name", "b0"]);
        for (end, address) in [("a0", "198.18.9.1/32"), ("b0", "198.18.9.2/32")] {
            host.ip(&["address", "add", address, "dev", end]);
            host.ip(&["link", "set", end, "up"]);
        }
        let all = (&host, &host, &host);
        assert_each_byte_counts_once(all, "198.18.9.2", &["lo", "a0", "b0"], method);
    });
}
