//! `goodput replay` as a program: bad input, interruption, a kill.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::server::{Exchange, HEAD, log, serve, tail, token, trace_text};
use analyzer::outcome::Class;
use analyzer::records::{RequestRecord, RunRecord, ScheduleRecord, read_lines, schedule_sha256};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const REQUESTS: usize = 12;
const ANSWERED: usize = 3;
/// Bounds a wait for something that must happen; never the time a passing test takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn goodput(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
    command.arg("replay").args(args).stdin(Stdio::null());
    command
}

fn write_trace(dir: &Path) -> PathBuf {
    let prompts: Vec<String> = (0..REQUESTS).map(|n| format!("prompt {n:02} of a test")).collect();
    let path = dir.join("trace.jsonl");
    std::fs::write(&path, trace_text(&prompts)).unwrap();
    path
}

fn answer(mut exchange: Exchange) {
    exchange.write(HEAD);
    exchange.write(token());
    exchange.write(token());
    exchange.write(tail());
    exchange.wait_for_close();
}

/// Answers three requests and holds the others; reports each that it received.
fn half_dead_server() -> (String, Receiver<()>) {
    let (sender, receiver) = channel();
    let count = std::sync::atomic::AtomicUsize::new(0);
    let address = serve(move |mut exchange| {
        let before = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let _ = sender.send(());
        if before < ANSWERED { answer(exchange) } else { exchange.wait_for_close() }
    });
    (format!("http://{address}"), receiver)
}

/// A replay in which every request is with the server and three have been answered and recorded.
struct Stuck {
    child: Child,
    dir: tempfile::TempDir,
}

impl Stuck {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (url, received) = half_dead_server();
        let trace = write_trace(dir.path());
        let out = dir.path().join("out");
        let args = ["--url", &url, "--trace", trace.to_str().unwrap(), "--rate", "200"];
        let child = goodput(&args)
            .arg("--out")
            .arg(&out)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        for _ in 0..REQUESTS {
            received.recv_timeout(PATIENCE).unwrap();
        }
        let stuck = Self { child, dir };
        let begin = Instant::now();
        while stuck.records().len() < ANSWERED {
            assert!(begin.elapsed() < PATIENCE, "the answers were never recorded");
            std::thread::yield_now();
        }
        stuck
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    fn records(&self) -> Vec<RequestRecord> {
        read_lines(&self.out().join("requests.jsonl")).unwrap().records
    }

    fn signal(&mut self, signal: Signal) -> std::process::ExitStatus {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        kill(pid, signal).unwrap();
        self.child.wait().unwrap()
    }
}

#[test]
fn interruption_leaves_a_line_for_every_request_and_says_so() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let mut stuck = Stuck::new();
        assert_eq!(stuck.signal(signal).code(), Some(code));
        let records = stuck.records();
        let count = |class| records.iter().filter(|record| record.class == class).count();
        assert_eq!(records.len(), REQUESTS);
        assert_eq!(count(Class::Ok), ANSWERED);
        assert_eq!(count(Class::CancelledByTool), REQUESTS - ANSWERED);
        let run = RunRecord::read(&stuck.out().join("run.json")).unwrap();
        assert!(run.interrupted);
        assert_eq!(run.attempted, u64::try_from(REQUESTS).unwrap());
    }
}

#[test]
fn a_kill_loses_only_requests_in_flight() {
    let mut stuck = Stuck::new();
    assert_eq!(stuck.signal(Signal::SIGKILL).code(), None);
    let requests = read_lines::<RequestRecord>(&stuck.out().join("requests.jsonl")).unwrap();
    assert_eq!((requests.records.len(), requests.torn_bytes), (ANSWERED, 0));
    assert!(requests.records.iter().all(|record| record.class == Class::Ok));
    // The schedule tells what is missing; without run.json nobody takes the run for whole.
    let schedule = read_lines::<ScheduleRecord>(&stuck.out().join("schedule.jsonl")).unwrap();
    assert_eq!(schedule.records.len(), REQUESTS);
    assert!(!stuck.out().join("run.json").exists());
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn bad_input_gets_exit_code_2_the_mend_and_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let good_trace = write_trace(dir.path());
    let good_trace = good_trace.to_str().unwrap();
    let bad_trace = dir.path().join("bad.jsonl");
    let row = r#"{"timestamp": -1, "input_length": 5, "output_length": 1, "hash_ids": [1]}"#;
    std::fs::write(&bad_trace, row).unwrap();
    let bad_trace = bad_trace.to_str().unwrap();
    let url = format!("http://{}", serve(answer));
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let missing = dir.path().join("missing");
    let missing = missing.to_str().unwrap();
    let cases: [(&[&str], &str); 9] = [
        (&["--url", &url, "--trace", missing, "--rate", "5"], "check the path"),
        (&["--url", &url, "--trace", bad_trace, "--rate", "5"], "bad.jsonl:1: timestamp is -1"),
        (&["--url", &url, "--trace", good_trace, "--rate", "NaN"], "rate is NaN"),
        (&["--url", &url, "--trace", good_trace, "--rate", "0"], "above 0"),
        (&["--url", &closed, "--trace", good_trace, "--rate", "5"], "start the service"),
        (&["--url", "https://127.0.0.1", "--trace", good_trace, "--rate", "5"], "plain http port"),
        (&["--url", &url, "--trace", good_trace, "--rate", "5", "--requests", "13"], "at most 12"),
        (&["--url", &url, "--trace", good_trace, "--rate", "5", "--token-file", missing], "token"),
        (&["--url", &url, "--trace", good_trace, "--rate", "5", "--no-such"], "--no-such"),
    ];
    for (args, mend) in cases {
        let out = dir.path().join("out");
        let output = goodput(args).arg("--out").arg(&out).output().unwrap();
        let (stdout, stderr) = text(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(mend), "{args:?}: {stderr}");
        assert!(stdout.is_empty() && !out.exists(), "{args:?}");
    }
}

#[test]
fn a_finished_replay_adds_up_and_prints_what_it_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = log();
    let writer = std::sync::Arc::clone(&tokens);
    let url = format!(
        "http://{}",
        serve(move |exchange| {
            writer.lock().unwrap().push(exchange.head.clone());
            answer(exchange);
        })
    );
    let token_file = dir.path().join("token");
    std::fs::write(&token_file, "sesame-3141\n").unwrap();
    let trace = write_trace(dir.path());
    let out = dir.path().join("out");
    let run = || {
        goodput(&["--url", &url, "--rate", "400", "--arrivals", "poisson", "--json"])
            .args([Path::new("--trace"), &trace, Path::new("--out"), &out])
            .args([Path::new("--token-file"), &token_file])
            .output()
            .unwrap()
    };
    let output = run();
    let (stdout, stderr) = text(&output);
    assert!(output.status.success(), "{stderr}");
    let printed: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(printed["classes"]["ok"], REQUESTS);
    let record = RunRecord::read(&out.join("run.json")).unwrap();
    assert_eq!(printed["run"], serde_json::to_value(&record).unwrap());
    let schedule = read_lines::<ScheduleRecord>(&out.join("schedule.jsonl")).unwrap();
    assert_eq!(schedule_sha256(schedule.records).unwrap(), record.schedule_sha256);
    let heads = tokens.lock().unwrap().concat();
    assert_eq!(heads.matches("Authorization: Bearer sesame-3141\r\n").count(), REQUESTS);
    // The token is in no file and in no output.
    for file in std::fs::read_dir(&out).unwrap() {
        let content = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!content.contains("sesame"));
    }
    assert!(!stdout.contains("sesame") && !stderr.contains("sesame"));
    // A second run into the same directory would mix the two.
    let again = run();
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again).1.contains("give another --out directory"));
    assert_eq!(RunRecord::read(&out.join("run.json")).unwrap(), record);
}
