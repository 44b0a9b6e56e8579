//! What the program tells of the gateway that runs on its host.

#![expect(
    clippy::unwrap_used,
    reason = "helpers outside test functions fail their test by panicking"
)]

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use common::{Running, kernel_available};
use serde_json::Value;

/// Outside the list of variables that may leave the host.
const CANARY: &str = "canary-5d1f0c";
/// A name that no process of this host has; the kernel keeps 15 characters.
const NAME: &str = "gp-legs-loxilb";

/// A process called [`NAME`] that waits until it is ended, with a mode and a secret in its environment.
fn gateway(folder: &std::path::Path, mode: &str) -> Running {
    let path = folder.join(NAME);
    if !path.exists() {
        // A name is the file's: a link to the program is enough.
        std::fs::copy("/bin/sleep", &path).unwrap();
    }
    let child = Command::new(path)
        .arg("600")
        .env("LOXILB_KV_LB_MODE", mode)
        .env("GP_SECRET", CANARY)
        .env("LOXILB_KV_LB_MODE_NOTE", CANARY)
        .spawn()
        .unwrap();
    Running(child)
}

fn agent(more: &[&str]) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_goodput-agent"))
        .args(["run", "--interface", "lo", "--endpoint", "vip=127.0.0.1:9", "--api", "127.0.0.1:0"])
        .args(more)
        .env("GOODPUT_LOG", "debug")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    (child, line)
}

fn get(api: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(api).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn json(answer: &str) -> Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn of<'a>(evidence: &'a Value, process: &Running) -> &'a Value {
    let all = evidence["processes"]["value"].as_array().unwrap();
    all.iter().find(|it| it["pid"] == process.0.id()).unwrap()
}

#[test]
fn the_gateways_mode_is_told_and_nothing_else_of_its_environment() {
    if !kernel_available("the_gateways_mode_is_told_and_nothing_else_of_its_environment") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = gateway(folder.path(), "hard");
    let (child, ready) = agent(&["--loxilb-process", NAME]);
    let mut agent = Running(child);
    let api = serde_json::from_str::<Value>(&ready).unwrap()["api"].as_str().unwrap().to_owned();
    let told = json(&get(&api, "/v1/evidence"));
    let known = of(&told, &first);
    assert_eq!(known["environment"]["value"]["LOXILB_KV_LB_MODE"], "hard", "{told}");
    assert!(known["started_boottime_ns"].as_u64().unwrap() > 0);
    // Read before the capabilities were dropped, and so before this call.
    assert!(known["environment"]["at_ns"].as_u64() < told["at_ns"].as_u64(), "{told}");
    assert_eq!(told["foreign_programs"]["state"], "known", "{told}");
    // Its start is seen by anyone; its environment needs what the agent no longer has.
    let second = gateway(folder.path(), "soft");
    let later = json(&get(&api, "/v1/evidence"));
    let unknown = of(&later, &second);
    assert_eq!(unknown["environment"]["state"], "unknown", "{later}");
    assert!(unknown["environment"]["mend"].as_str().unwrap().contains("restart the agent"));
    assert_eq!(of(&later, &first)["environment"], known["environment"]);
    let mut said = String::from(&ready);
    for path in ["/v1/evidence", "/v1/status", "/v1/inflight", "/metrics"] {
        said += &get(&api, path);
    }
    let pid = nix::unistd::Pid::from_raw(i32::try_from(agent.0.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    agent.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("stopping"), "{said}");
    assert!(!said.contains(CANARY), "{said}");
}

/// A control plane in LoxiLB's shape that answers each call with the next of `answers`, and the last for ever.
fn control_plane(answers: Vec<String>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut answers = answers.into_iter();
        let mut answer = String::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 1024];
            let _ = stream.read(&mut head).unwrap();
            answer = answers.next().unwrap_or(answer);
            // An agent that has gone misses it.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

fn rules(backend: u16) -> String {
    let body = format!(
        r#"{{"lbAttr":[{{"serviceArguments":{{"externalIP":"127.0.0.1","port":30999,"protocol":"tcp"}},
        "endpoints":[{{"endpointIP":"127.0.0.1","targetPort":{backend},"ep_role":1}}]}}]}}"#
    );
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn endpoints_follow_the_gateways_rules_and_failures_change_nothing() {
    if !kernel_available("endpoints_follow_the_gateways_rules_and_failures_change_nothing") {
        return;
    }
    let failed = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_owned();
    let rest = control_plane(vec![rules(30998), failed, rules(30997)]);
    let url = format!("http://{rest}");
    let (child, ready) = agent(&["--discover", &url, "--discover-interval-ms", "100"]);
    let _agent = Running(child);
    let api = serde_json::from_str::<Value>(&ready).unwrap()["api"].as_str().unwrap().to_owned();
    let addresses = |status: &Value| {
        let all = status["endpoints"].as_array().unwrap().iter();
        all.map(|it| {
            format!("{}={}", it["role"].as_str().unwrap(), it["address"].as_str().unwrap())
        })
        .collect::<Vec<_>>()
    };
    let before = ["vip=127.0.0.1:9", "prefill=127.0.0.1:30998", "vip=127.0.0.1:30999"];
    let after = ["vip=127.0.0.1:9", "prefill=127.0.0.1:30997", "vip=127.0.0.1:30999"];
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let status = loop {
        let status = json(&get(&api, "/v1/status"));
        let now = addresses(&status);
        if now == after {
            break status;
        }
        assert_eq!(now, before);
        assert!(std::time::Instant::now() < deadline, "{status}");
    };
    let discovery = &status["discovery"];
    assert_eq!(
        (&discovery["applied"], &discovery["failed"]),
        (&2.into(), &1.into()),
        "{discovery}"
    );
    assert_eq!((&discovery["failing"], &discovery["endpoints"]), (&false.into(), &2.into()));
    assert!(discovery["last_error"].as_str().unwrap().contains("503"), "{discovery}");
    let metrics = get(&api, "/metrics");
    assert!(
        metrics.contains("goodput_agent_discovery_readings_total{outcome=\"failed\"} 1\n"),
        "{metrics}"
    );
    assert!(metrics.contains("endpoint=\"127.0.0.1:30997\",role=\"prefill\""), "{metrics}");
}

#[test]
fn an_agent_starts_before_its_gateway_and_without_any_endpoint() {
    if !kernel_available("an_agent_starts_before_its_gateway_and_without_any_endpoint") {
        return;
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_goodput-agent"))
        .args([
            "run",
            "--interface",
            "lo",
            "--api",
            "127.0.0.1:0",
            "--discover",
            "http://127.0.0.1:1",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let _agent = Running(child);
    let api = serde_json::from_str::<Value>(&line).unwrap()["api"].as_str().unwrap().to_owned();
    let status = json(&get(&api, "/v1/status"));
    assert_eq!(status["endpoints"], serde_json::json!([]));
    assert_eq!(status["discovery"]["failing"], true, "{status}");
}
