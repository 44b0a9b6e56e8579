//! SIGHUP to the program while it watches.

use std::fs;
use std::net::TcpStream;

use nix::sys::signal::Signal;

use crate::common::kernel_available;
use crate::live::{Live, json, post, scripted, send, stream, until};

#[test]
fn a_reload_with_live_traffic_moves_the_agent_to_the_new_endpoint() {
    if !kernel_available("reload") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    let good = || stream("", &["a", "b", "c"]);
    let (old, new) = (scripted(vec![good(), good()]), scripted(vec![good(), good()]));
    let write = |address| {
        let text = format!("[[endpoints]]\naddress = \"{address}\"\nrole = \"backend\"\n");
        fs::write(&file, text).unwrap();
    };
    write(old);
    let agent = Live::start(folder.path(), &["--config", file.to_str().unwrap()], "info");
    let seen = || {
        let rows = json(&agent.call("GET", "/v1/inflight", "", ""));
        rows["endpoints"][0]["endpoint"].as_str().unwrap().to_owned()
    };
    let observed = |send_to: &dyn Fn()| {
        let opened = json(&agent.call("POST", "/v1/windows", "", r#"{"label":"reload"}"#));
        let id = opened["window_id"].as_str().unwrap().to_owned();
        send_to();
        let closed = json(&agent.call("POST", &format!("/v1/windows/{id}/close"), "", ""));
        let rows = agent.call("GET", &format!("/v1/windows/{id}/observations"), "", "");
        agent.call("DELETE", &format!("/v1/windows/{id}"), "", "");
        assert_eq!(closed["complete"], true, "{closed}");
        (closed["observations"].as_u64().unwrap(), rows)
    };
    let both = || {
        send(old, &post(1, "", "{}"));
        send(new, &post(2, "", "{}"));
    };
    assert_eq!(seen(), old.to_string());
    let (count, rows) = observed(&both);
    assert!(count == 1 && rows.contains(&old.to_string()), "{rows}");
    write(new);
    agent.signal(Signal::SIGHUP);
    until("the new endpoint", || (seen() == new.to_string()).then_some(()));
    let (count, rows) = observed(&both);
    assert!(count == 1 && rows.contains(&new.to_string()), "{rows}");
    fs::write(&file, "nonsense = 1\n").unwrap();
    agent.signal(Signal::SIGHUP);
    until("the refusal", || {
        let metrics = agent.call("GET", "/metrics", "", "");
        metrics.contains("config_reloads_total{outcome=\"refused\"} 1").then_some(())
    });
    assert_eq!(seen(), new.to_string(), "a file that can't be used changes nothing");
}

#[test]
fn older_and_younger_connections_of_an_endpoint_that_a_reload_brought_are_counted() {
    if !kernel_available("reload and reconciliation") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    let listen = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (old, new) = (listen(), listen());
    let write = |listener: &std::net::TcpListener| {
        let address = listener.local_addr().unwrap();
        let text = format!("[[endpoints]]\naddress = \"{address}\"\nrole = \"backend\"\n");
        fs::write(&file, text).unwrap();
        address
    };
    write(&old);
    let agent = Live::start(folder.path(), &["--config", file.to_str().unwrap()], "info");
    let address = write(&new);
    let older = [0; 3].map(|_| TcpStream::connect(address).unwrap());
    agent.signal(Signal::SIGHUP);
    let gauge = || json(&agent.call("GET", "/v1/inflight", "", ""))["endpoints"][0].clone();
    until("the new endpoint", || (gauge()["endpoint"] == address.to_string()).then_some(()));
    let told = gauge();
    assert_eq!((&told["connections"], &told["adopted"]), (&3.into(), &3.into()), "{told}");
    assert_eq!(told["certainty"], "exact", "{told}");
    let client = TcpStream::connect(address).unwrap();
    let before = gauge()["reconciliations"].as_u64().unwrap();
    let told = until("four reconciliations", || {
        let told = gauge();
        (told["reconciliations"].as_u64().unwrap() >= before + 4).then_some(told)
    });
    assert_eq!((&told["connections"], &told["drift"]), (&4.into(), &0.into()), "{told}");
    assert_eq!(told["corrections"], 0, "{told}");
    drop((older, client, new));
    until("the end of all", || (gauge()["connections"] == 0).then_some(()));
}
