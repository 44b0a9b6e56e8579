//! `goodput-agent doctor` on this host's kernel.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;

use serde_json::Value;

use crate::common::{Running, kernel_available};

struct Answer {
    code: Option<i32>,
    report: Value,
}

fn doctor(arguments: &[&str]) -> Answer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodput-agent"));
    let output = command.args(["doctor", "--json"]).args(arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let report =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| unreachable!("{stderr}"));
    Answer { code: output.status.code(), report }
}

impl Answer {
    fn row(&self, check: &str) -> &Value {
        let rows = self.report["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["check"] == check);
        row.unwrap_or_else(|| unreachable!("no row {check} in {}", self.report))
    }

    fn assert_row(&self, check: &str, state: &str) {
        assert_eq!(self.row(check)["state"], state, "{}", self.report);
    }
}

fn head(stream: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// Passes one request on as `change` says, and its answer back.
fn relay(change: fn(String) -> String) -> (SocketAddr, SocketAddr) {
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (vip, backend) = (listen(), listen());
    let addresses = (vip.local_addr().unwrap(), backend.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut client, _) = vip.accept().unwrap();
        let mut onward = TcpStream::connect(addresses.1).unwrap();
        let request = change(head(&mut client));
        onward.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        onward.read_to_string(&mut answer).unwrap();
        client.write_all(answer.as_bytes()).unwrap();
    });
    std::thread::spawn(move || {
        let (mut gateway, _) = backend.accept().unwrap();
        head(&mut gateway);
        let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
        gateway.write_all(answer).unwrap();
    });
    addresses
}

fn tried(change: fn(String) -> String) -> Answer {
    let (vip, backend) = relay(change);
    let (vip, backend) = (format!("http://{vip}/v1"), format!("backend={backend}"));
    doctor(&["--interface", "lo", "--vip", &vip, "--endpoint", &backend])
}

#[test]
fn this_host_is_ready_and_every_program_for_loopback_loads() {
    if !kernel_available("doctor") {
        return;
    }
    let answer =
        doctor(&["--interface", "lo", "--endpoint", "vip=127.0.0.1:9", "--api", "127.0.0.1:0"]);
    assert_eq!(answer.report["ready"], true, "{}", answer.report);
    assert!(answer.code.is_some_and(|code| code < 2), "{}", answer.report);
    assert!(["tcx", "socket-filter"].map(Value::from).contains(&answer.report["source"]));
    for check in ["kernel.ring_buffer", "kernel.socket_states", "kernel.programs", "interface.lo"] {
        answer.assert_row(check, "ok");
    }
    for check in ["capability.CAP_BPF", "time.namespace", "config", "api", "programs.lo"] {
        answer.assert_row(check, "ok");
    }
    let programs = answer.row("kernel.programs")["found"].as_str().unwrap();
    assert!(programs.contains("instructions"), "{programs}");
}

#[test]
fn the_forced_fallback_is_named_with_its_reason() {
    if !kernel_available("doctor --source") {
        return;
    }
    let answer = doctor(&["--source", "socket-filter"]);
    assert_eq!(answer.report["source"], "socket-filter");
    answer.assert_row("kernel.source", "ok");
    answer.assert_row("kernel.socket_filter", "ok");
}

#[test]
fn a_bad_file_and_an_unknown_interface_fail() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.toml");
    std::fs::write(&path, "name = \"a\"\nring = 1\n").unwrap();
    let answer = doctor(&["--config", path.to_str().unwrap(), "--interface", "nosuch0"]);
    assert_eq!((answer.code, &answer.report["ready"]), (Some(2), &Value::from(false)));
    answer.assert_row("config", "fail");
    answer.assert_row("interface.nosuch0", "fail");
    assert!(answer.row("config")["found"].as_str().unwrap().contains("line 2"));
}

#[test]
fn without_capabilities_each_is_named_and_nothing_panics() {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]);
    // The folders of a build may be closed to others: the program is opened before the user changes.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("goodput-agent");
    std::fs::copy(env!("CARGO_BIN_EXE_goodput-agent"), &program).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let output = command.arg(&program).args(["doctor", "--interface", "lo"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    for name in ["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"] {
        assert!(text.contains(&format!("FAIL  capability.{name}")), "{text}");
    }
    assert!(text.contains("sudo setcap cap_bpf,cap_perfmon"), "{text}");
}

#[test]
fn a_gateway_that_forwards_the_header_is_told_from_one_that_drops_it() {
    if !kernel_available("doctor --vip") {
        return;
    }
    let good = tried(|request| request);
    for check in ["vip.route", "vip.answer", "vip.visible", "vip.traceparent"] {
        good.assert_row(check, "ok");
    }
    let renamed = tried(|request| request.replace("traceparent:", "x-dropped:"));
    renamed.assert_row("vip.visible", "ok");
    renamed.assert_row("vip.traceparent", "warn");
}

#[test]
fn a_service_that_nobody_serves_fails_with_its_mend() {
    if !kernel_available("doctor --vip without a service") {
        return;
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let answer = doctor(&["--interface", "lo", "--vip", &closed]);
    answer.assert_row("vip.answer", "fail");
    assert_eq!(answer.code, Some(2));
}

#[test]
fn an_agent_that_runs_already_is_told_from_any_other_server() {
    if !kernel_available("doctor beside an agent") {
        return;
    }
    let watch = ["--interface", "lo", "--endpoint", "vip=127.0.0.1:9", "--api"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodput-agent"));
    command.arg("run").args(watch).arg("127.0.0.1:0").stdout(std::process::Stdio::piped());
    let mut running = Running(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let api = ready["api"].as_str().unwrap();
    let answer = doctor(&[&watch[..], &[api]].concat());
    answer.assert_row("api", "warn");
    assert!(answer.row("api")["found"].as_str().unwrap().contains("an agent answers"));
    assert_eq!(answer.code, Some(1), "{}", answer.report);
}
