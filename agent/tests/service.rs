//! The agent as a service manager runs it.

#![expect(
    clippy::unwrap_used,
    reason = "helpers outside test functions fail their test by panicking"
)]

mod common;

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Running, kernel_available};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const UNIT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/systemd/goodput-agent.service"));
const WATCH: [&str; 7] =
    ["run", "--interface", "lo", "--endpoint", "vip=127.0.0.1:9", "--api", "127.0.0.1:0"];

fn key(name: &str) -> &'static str {
    let line = UNIT.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    line.unwrap_or_else(|| unreachable!("the unit has no {name}"))
}

fn receive(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 512];
    let len = socket.recv(&mut bytes).unwrap();
    String::from_utf8(bytes[..len].to_vec()).unwrap()
}

/// The next message that is no watchdog ping.
fn next_state(socket: &UnixDatagram) -> String {
    loop {
        let state = receive(socket);
        if !state.contains("WATCHDOG=1") {
            return state;
        }
    }
}

#[test]
fn ready_pings_reloading_and_stopping_reach_the_service_manager() {
    if !kernel_available("sd_notify") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodput-agent"));
    command.args(WATCH).env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "3000000");
    let child = command.stdout(Stdio::null()).spawn().unwrap();
    let mut running = Running(child);
    let signal = |running: &Running, signal| {
        kill(Pid::from_raw(i32::try_from(running.0.id()).unwrap()), signal).unwrap();
    };
    assert!(next_state(&socket).contains("READY=1"));
    // Each is one that the worker answered for.
    let mut pings = 0;
    while pings < 3 {
        pings += usize::from(receive(&socket).contains("WATCHDOG=1"));
    }
    signal(&running, Signal::SIGHUP);
    let reloading = next_state(&socket);
    assert!(reloading.contains("RELOADING=1") && reloading.contains("MONOTONIC_USEC="));
    assert!(next_state(&socket).contains("READY=1"));
    signal(&running, Signal::SIGTERM);
    assert!(next_state(&socket).contains("STOPPING=1"));
    assert_eq!(running.0.wait().unwrap().code(), Some(0));
}

#[test]
fn the_capabilities_of_the_unit_are_enough_without_root() {
    if !kernel_available("capabilities of the unit") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("goodput-agent");
    std::fs::copy(env!("CARGO_BIN_EXE_goodput-agent"), &program).unwrap();
    assert_eq!(key("AmbientCapabilities"), key("CapabilityBoundingSet"));
    let names: Vec<_> = key("AmbientCapabilities").split(' ').collect();
    let added: String =
        names.iter().map(|name| format!(",+{}", name[4..].to_lowercase())).collect();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs"]);
    for set in ["inh-caps", "ambient-caps", "bounding-set"] {
        command.arg(format!("--{set}=-all{added}"));
    }
    command.arg(&program).args(WATCH).stdout(Stdio::piped());
    let mut running = Running(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("\"ready\":true"), "{line}");
    let tasks = std::fs::read_dir(format!("/proc/{}/task", running.0.id())).unwrap();
    for task in tasks {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let told =
            |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        // The bounding set takes CAP_SETPCAP to empty; no_new_privs makes it harmless.
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!(told(set), Some("0000000000000000"), "{set} of {status}");
        }
        assert_eq!(told("NoNewPrivs:"), Some("1"), "{status}");
    }
}

#[test]
fn the_unit_says_what_the_agent_does() {
    assert_eq!(key("Type"), "notify");
    assert!(key("WatchdogSec").parse::<u32>().unwrap() > 0);
    assert!(key("ExecReload").contains("-HUP $MAINPID"));
    assert!(key("ExecStart").ends_with("goodput-agent run --config /etc/goodput/agent.toml"));
    assert_eq!(key("NoNewPrivileges"), "yes");
    for call in ["bpf", "perf_event_open"] {
        assert!(key("SystemCallFilter").split(' ').any(|it| it == call), "{call}");
    }
    for line in UNIT.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '['])) {
        assert!(
            line.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.is_empty())
        );
    }
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    let folder = tempfile::tempdir().unwrap();
    // The program that it starts must exist.
    let unit = UNIT.replace("/usr/local/bin/goodput-agent", "/bin/true");
    let verify = |text: &str| {
        let path = folder.path().join("goodput-agent.service");
        std::fs::write(&path, text).unwrap();
        Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path).output()
    };
    let verified = match verify(&unit) {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED systemd-analyze verify: {error}; apt-get install systemd");
            let required = std::env::var("GOODPUT_REQUIRE_KERNEL").is_ok_and(|it| it == "1");
            assert!(!required, "GOODPUT_REQUIRE_KERNEL=1 and systemd-analyze is missing");
            return;
        }
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && said.is_empty(), "{said}");
    let wrong = verify(&unit.replace("WatchdogSec=30", "WatchdogSecs=30")).unwrap();
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("WatchdogSecs"));
}

#[test]
fn the_example_configuration_is_complete() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/agent.toml");
    let settings = agent::config::Settings::read(std::path::Path::new(path)).unwrap();
    assert_eq!(settings.complete("host").unwrap().endpoints.len(), 2);
}
