//! The program as its users start it.

#![expect(
    clippy::unwrap_used,
    reason = "helpers outside test functions fail their test by panicking"
)]

mod common;

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::{Running, kernel_available};

fn agent(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodput-agent"));
    command.args(arguments);
    command
}

fn refused(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = agent(arguments).output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{stderr}");
    assert!(stdout.is_empty(), "no ready line");
    stderr
}

impl Running {
    fn start(arguments: &[&str]) -> (Self, serde_json::Value) {
        let mut child = agent(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let running = Self(child);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        (running, serde_json::from_str(&line).unwrap())
    }

    fn pid(&self) -> nix::unistd::Pid {
        nix::unistd::Pid::from_raw(i32::try_from(self.0.id()).unwrap())
    }
}

#[test]
fn mistakes_are_named_with_their_mend() {
    let base = ["run", "--endpoint", "vip=127.0.0.1:9"];
    let with = |more: &[&'static str]| [&base[..], more].concat();
    assert!(refused(&base).contains("--interface"));
    assert!(refused(&["run", "--interface", "lo"]).contains("--endpoint"));
    assert!(refused(&with(&["--api", "here", "--interface", "lo"])).contains("127.0.0.1:9911"));
    assert!(refused(&["run", "--endpoint", "boss=1.1.1.1:1"]).contains("vip, backend"));
    assert!(refused(&with(&["--config", "/nonexistent.toml"])).contains("/nonexistent.toml"));
    assert!(refused(&with(&["--bogus"])).contains("--bogus"));
}

#[test]
fn a_bad_file_is_named_with_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.toml");
    std::fs::write(&path, "name = \"a\"\nring = 1\n").unwrap();
    let message = refused(&["run", "--config", path.to_str().unwrap()]);
    assert!(message.contains("agent.toml") && message.contains("line 2"), "{message}");
    assert!(message.contains("ring"), "{message}");
}

#[test]
fn a_port_in_use_is_named_before_anything_is_attached() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let arguments =
        ["run", "--interface", "lo", "--endpoint", "vip=127.0.0.1:9", "--api", &address];
    let message = refused(&arguments);
    assert!(message.contains(&address) && message.contains("--api"), "{message}");
}

#[test]
fn an_unknown_interface_is_named() {
    if !kernel_available("an_unknown_interface_is_named") {
        return;
    }
    let arguments =
        ["run", "--interface", "nosuch0", "--endpoint", "vip=127.0.0.1:9", "--api", "127.0.0.1:0"];
    let message = refused(&arguments);
    assert!(message.contains("nosuch0") && message.contains("name one of"), "{message}");
}

/// The capability lines of every thread of a process.
fn capabilities(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let status = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.unwrap().path().join("status")).unwrap()
    };
    tasks
        .map(status)
        .flat_map(|text| {
            let lines = text.lines().filter(|line| line.starts_with("Cap"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn no_thread_keeps_a_capability_and_the_counters_can_still_be_read() {
    if !kernel_available("no_thread_keeps_a_capability") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let jsonl = folder.path().join("observations.jsonl");
    let (mut running, ready) = Running::start(&[
        "run",
        "--interface",
        "lo",
        "--endpoint",
        "vip=127.0.0.1:9",
        "--api",
        "127.0.0.1:0",
        "--jsonl",
        jsonl.to_str().unwrap(),
    ]);
    assert_eq!(ready["ready"], true);
    assert_eq!(ready["interfaces"], serde_json::json!(["lo"]));
    let lines = capabilities(running.0.id());
    assert!(lines.len() >= 2 * 5, "two threads, five sets each: {lines:?}");
    for line in lines {
        assert!(line.ends_with("\t0000000000000000"), "{line}");
    }
    let status = get(ready["api"].as_str().unwrap(), "/v1/status");
    assert_eq!(status["source"], "tcx");
    assert!(status["counters"]["packets"].as_u64().unwrap() > 0, "{status}");
    nix::sys::signal::kill(running.pid(), nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(running.0.wait().unwrap().code(), Some(0));
    assert!(Path::new(&jsonl).exists());
}

fn get(address: &str, path: &str) -> serde_json::Value {
    use std::io::Write as _;
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
}
