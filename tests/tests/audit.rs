//! Audits of live traffic: which gateway routes by prefix, what a killed or lossy recording is worth, and
//! that no prompt and no salt leaves a trace.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use e2e::agent::{Agent, Watch};
use e2e::binaries::binary;
use e2e::fleet::Fleet;
use e2e::jsonl;
use e2e::process::{Finished, Process, run};
use e2e::require_kernel;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const FLEET: &str = "
[engine]
prefill_tokens_per_s = 10000000
decode_interval_us = 1000
cache_blocks = 65536
[[backend]]
name = 'b0'
[[backend]]
name = 'b1'
[[gateway]]
name = 'turns'
policy = { algorithm = 'round_robin' }
[[gateway]]
name = 'aware'
policy = { algorithm = 'cache_aware', index_blocks = 65536, balance_abs_threshold = 1000 }
";
/// Longer than any test: recordings are ended by a signal, as soon as the traffic is over.
const LONG: &str = "10m";
/// Questions about five documents: five first ones, and 75 that repeat a prefix.
const ROWS: usize = 80;
const LIMIT: Duration = Duration::from_secs(60);
const INTERRUPTED: i32 = 130;
/// In every prompt.
const CANARY: &str = "canary-9c1f-of-a-prompt";
const SALT: &str = "5ec2e70123456789abcdef0123456789";

fn goodput(args: &[&str]) -> anyhow::Result<Command> {
    let mut command = Command::new(binary("goodput")?);
    command.arg("audit").args(args);
    Ok(command)
}

/// `goodput-agent audit` of both backends and the VIP, recording.
fn recorder(fleet: &Fleet, gateway: &str, folder: &Path, more: &[&str]) -> anyhow::Result<Process> {
    let mut command = Command::new(binary("goodput-agent")?);
    command.args(["audit", "--json", "--interface", "lo", "--for", LONG, "--out"]).arg(folder);
    command.arg("--endpoint").arg(format!("vip={}", fleet.vip(gateway)?));
    for (_, backend) in fleet.backends()? {
        command.arg("--endpoint").arg(format!("backend={backend}"));
    }
    command.args(more);
    let (process, ready) = Process::server(command)?;
    anyhow::ensure!(ready["recording"] == true, "{ready}");
    Ok(process)
}

fn judged(folder: &Path) -> anyhow::Result<(Value, Finished)> {
    let finished = run(goodput(&[folder.to_str().unwrap(), "--json"])?, LIMIT)?;
    let report = serde_json::from_str(&finished.stdout);
    Ok((report.map_err(|error| anyhow::anyhow!("{error}: {}", finished.stderr))?, finished))
}

/// Asks `rows` questions about five documents in turn, of which `bytes` bytes are shared, one after the
/// other: what a gateway chooses then depends on nothing but its policy.
fn ask(to: SocketAddr, rows: usize, bytes: usize) -> anyhow::Result<()> {
    for row in 0..rows {
        let document = format!("{CANARY} of document {} ", row % 5);
        let text = document.repeat(bytes / document.len() + 1) + &format!("question {row}");
        let messages = json!([{ "role": "user", "content": text }]);
        let body =
            json!({ "model": "sim-model", "messages": messages, "max_tokens": 3, "stream": true });
        let body = body.to_string();
        let mut stream = TcpStream::connect(to)?;
        write!(
            stream,
            "POST /v1/chat/completions HTTP/1.1\r\nHost: audit\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        anyhow::ensure!(
            answer.starts_with("HTTP/1.1 200") && answer.contains("[DONE]"),
            "{answer}"
        );
    }
    Ok(())
}

fn wait_for(path: &Path) {
    let deadline = Instant::now() + LIMIT;
    while !path.is_file() {
        assert!(Instant::now() < deadline, "{} did not come", path.display());
        std::thread::yield_now();
    }
}

fn role(report: &Value) -> &Value {
    &report["roles"][0]
}

fn codes(reasons: &Value) -> Vec<&str> {
    reasons.as_array().unwrap().iter().map(|reason| jsonl::text(reason, "code")).collect()
}

/// A running agent records while `goodput audit` waits, Ctrl-C ends it, and the affinity of the two
/// gateways over the same backends differs at every length.
#[test]
fn affinity_tells_cache_aware_routing_from_round_robin() -> anyhow::Result<()> {
    require_kernel!();
    let fleet = Fleet::start(FLEET)?;
    let watch = Watch {
        interfaces: vec!["lo"],
        api: "127.0.0.1:0",
        vips: vec![fleet.vip("turns")?, fleet.vip("aware")?],
        backends: vec![fleet.backend("b0")?, fleet.backend("b1")?],
    };
    let agent = Agent::start(&watch)?;
    for (gateway, affinity, says) in
        [("turns", "NOT_STICKY", "round robin"), ("aware", "STICKY", "routing by prefix")]
    {
        let folder = tempfile::tempdir()?;
        let out = folder.path().join("audit");
        let out_text = out.to_str().unwrap();
        let url = agent.api().url();
        let args = ["--agent", url, "--for", LONG, "--out", out_text, "--json"];
        let mut audit = Process::spawn(goodput(&args)?)?;
        wait_for(&out.join("audit.json"));
        ask(fleet.vip(gateway)?, ROWS, 66_000)?;
        audit.signal(Signal::SIGINT)?;
        let finished = audit.wait(LIMIT)?;
        assert_eq!(finished.status.code(), Some(INTERRUPTED), "{}", finished.stderr);
        let (report, again) = judged(&out)?;
        assert_eq!(again.stdout, finished.stdout, "the same folder gives the same bytes");
        assert_eq!(again.status.code(), Some(0), "{report:#}");
        assert_eq!(
            (jsonl::text(&report, "state"), &report["reasons"]),
            ("interrupted", &json!([]))
        );
        let role = role(&report);
        assert_eq!((&role["requests"], &report["client_requests"]), (&ROWS.into(), &ROWS.into()));
        assert_eq!(jsonl::text(role, "affinity"), affinity, "{role:#}");
        let reading = jsonl::text(role, "reading");
        assert!(reading.contains(says), "{reading}");
        for size in role["prefixes"].as_array().unwrap() {
            assert_eq!(jsonl::text(size, "judgement"), affinity, "{size:#}");
            assert_eq!((&size["hashed"], &size["repeats"]), (&ROWS.into(), &75.into()), "{size:#}");
        }
        assert!(role["concentration"].as_f64().unwrap() >= 1.0);
        let picture = run(goodput(&[out_text])?, LIMIT)?;
        assert!(
            picture.stdout.contains(affinity) && picture.stdout.contains('█'),
            "{}",
            picture.stdout
        );
    }
    Ok(())
}

/// Every file, every output: no prompt, no salt; the hashes are those of the operator's salt.
#[test]
fn no_prompt_and_no_salt_is_in_any_output() -> anyhow::Result<()> {
    require_kernel!();
    let fleet = Fleet::start(FLEET)?;
    let folder = tempfile::tempdir()?;
    let salt = folder.path().join("salt");
    std::fs::write(&salt, SALT)?;
    let mut outputs = String::new();
    let mut hashes = Vec::new();
    for name in ["first", "second"] {
        let out = folder.path().join(name);
        let salt = ["--salt-file", salt.to_str().unwrap()];
        let mut recorder = recorder(&fleet, "aware", &out, &salt)?;
        ask(fleet.vip("aware")?, 25, 2000)?;
        recorder.signal(Signal::SIGTERM)?;
        let finished = recorder.wait(LIMIT)?;
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        outputs += &(finished.stdout + &finished.stderr);
        let (_, report) = judged(&out)?;
        outputs += &(report.stdout + &report.stderr);
        for entry in std::fs::read_dir(&out)? {
            outputs += &std::fs::read_to_string(entry?.path())?;
        }
        let rows = jsonl::read(&out.join("prefixes.jsonl"))?;
        assert_eq!(rows.len(), 50, "both legs");
        hashes.push(rows.iter().map(|row| row["prefixes"][0].to_string()).collect::<BTreeSet<_>>());
    }
    assert!(outputs.contains("goodput.prefix/1") && outputs.contains("\"complete\": true"));
    for secret in [CANARY, "document 3", SALT, &SALT.to_uppercase()] {
        assert!(!outputs.contains(secret), "{secret} is in an output");
    }
    assert_eq!(hashes[0], hashes[1], "one salt, one set of hashes");
    assert_eq!(hashes[0].len(), 5, "five documents");
    Ok(())
}

#[test]
fn a_lossy_recording_is_unknown() -> anyhow::Result<()> {
    require_kernel!();
    let fleet = Fleet::start(FLEET)?;
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("audit");
    let mut recorder = recorder(&fleet, "aware", &out, &["--ring-bytes", "4096"])?;
    // A reader that does not run, and a ring that holds one piece of a prompt.
    recorder.signal(Signal::SIGSTOP)?;
    ask(fleet.vip("aware")?, 25, 2000)?;
    recorder.signal(Signal::SIGCONT)?;
    recorder.signal(Signal::SIGINT)?;
    assert_eq!(recorder.wait(LIMIT)?.status.code(), Some(0));
    let (report, finished) = judged(&out)?;
    assert_eq!(finished.status.code(), Some(1));
    assert!(codes(&report["reasons"]).contains(&"loss"), "{report:#}");
    assert!(report["reasons"].to_string().contains("ring_full"), "{report:#}");
    assert_eq!(jsonl::text(role(&report), "affinity"), "UNKNOWN");
    assert_eq!(role(&report)["reading"], Value::Null);
    Ok(())
}

#[test]
fn a_killed_recorder_leaves_a_partial_folder_that_says_so() -> anyhow::Result<()> {
    require_kernel!();
    let fleet = Fleet::start(FLEET)?;
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("audit");
    let mut recorder = recorder(&fleet, "turns", &out, &[])?;
    ask(fleet.vip("turns")?, 25, 2000)?;
    let rows = out.join("kernel.jsonl");
    let deadline = Instant::now() + LIMIT;
    while std::fs::read_to_string(&rows)?.lines().count() < 50 {
        assert!(Instant::now() < deadline, "not every request was written as it ended");
        std::thread::yield_now();
    }
    recorder.signal(Signal::SIGKILL)?;
    recorder.wait(LIMIT)?;
    let (report, finished) = judged(&out)?;
    assert_eq!(finished.status.code(), Some(1));
    assert_eq!(jsonl::text(&report, "state"), "recording");
    assert_eq!(codes(&report["reasons"]), ["no_account", "loss"]);
    assert_eq!(role(&report)["requests"], 25);
    let picture = run(goodput(&[out.to_str().unwrap()])?, LIMIT)?;
    assert!(picture.stdout.contains("PARTIAL"), "{}", picture.stdout);
    Ok(())
}

#[test]
fn what_can_t_be_audited_is_said_with_the_mend() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().to_str().unwrap();
    let nobody = "http://127.0.0.1:9";
    let cases: [(&[&str], &str); 8] = [
        (&[], "FOLDER"),
        (&[path, "--agent", nobody], "cannot be used with"),
        (&[path], "no audit folder"),
        (&["--agent", nobody], "--for"),
        (&["--agent", nobody, "--for", "soon"], "--for"),
        (&["--agent", nobody, "--for", "1ms"], "between"),
        (&["--agent", nobody, "--for", "1s", "--out", path], "exists"),
        (&["--agent", nobody, "--for", "1s"], "no answer"),
    ];
    for (args, says) in cases {
        let finished = run(goodput(args)?, LIMIT)?;
        assert_eq!(finished.status.code(), Some(2), "{args:?}");
        assert!(finished.stderr.contains(says), "{args:?}: {}", finished.stderr);
    }
    let missing = folder.path().join("new");
    let out = missing.to_str().unwrap();
    run(goodput(&["--agent", nobody, "--for", "1s", "--out", out])?, LIMIT)?;
    assert!(!missing.exists(), "nothing was recorded, nothing is left");
    Ok(())
}

/// The gateway's agent sees the VIP and one backend, the other backend's agent the rest; a third one dies
/// in the middle.
#[test]
fn several_agents_are_one_audit_and_one_that_dies_is_told() -> anyhow::Result<()> {
    require_kernel!();
    let fleet = Fleet::start(FLEET)?;
    let watching = |vips: &[&str], backends: &[&str]| -> anyhow::Result<Agent> {
        let vips = vips.iter().map(|name| fleet.vip(name)).collect::<anyhow::Result<_>>()?;
        let backends =
            backends.iter().map(|name| fleet.backend(name)).collect::<anyhow::Result<_>>()?;
        Agent::start(&Watch { interfaces: vec!["lo"], api: "127.0.0.1:0", vips, backends })
    };
    let (gateway, other) = (watching(&["aware"], &["b0"])?, watching(&[], &["b1"])?);
    let idle = goodput(&["--agent", gateway.api().url(), "--for", "100ms"])?;
    let finished = run(idle, LIMIT)?;
    assert_eq!(finished.status.code(), Some(1));
    assert!(finished.stdout.contains("few_requests"), "{}", finished.stdout);
    for killed in [false, true] {
        let folder = tempfile::tempdir()?;
        let out = folder.path().join("audit");
        let [first, second] = [&gateway, &other].map(|agent| agent.api().url().to_owned());
        let out_text = out.to_str().unwrap();
        let args =
            ["--agent", &first, "--agent", &second, "--for", LONG, "--out", out_text, "--json"];
        let mut audit = Process::spawn(goodput(&args)?)?;
        wait_for(&out.join("audit.json"));
        ask(fleet.vip("aware")?, ROWS, 5000)?;
        if killed {
            other.process().signal(Signal::SIGKILL)?;
        }
        audit.signal(Signal::SIGINT)?;
        assert_eq!(audit.wait(LIMIT)?.status.code(), Some(INTERRUPTED));
        let (report, _) = judged(&out)?;
        if killed {
            assert_eq!(codes(&report["reasons"]), ["no_account", "loss"], "{report:#}");
            assert!(report["reasons"].to_string().contains("agent_unreachable"), "{report:#}");
            assert_eq!(jsonl::text(role(&report), "affinity"), "UNKNOWN");
        } else {
            assert_eq!(role(&report)["requests"], ROWS, "{report:#}");
            assert_eq!(jsonl::text(role(&report), "affinity"), "STICKY", "{report:#}");
            assert!(out.join("prefixes-1.jsonl").is_file() && out.join("kernel-2.jsonl").is_file());
        }
    }
    Ok(())
}
