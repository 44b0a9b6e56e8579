//! Nothing that clients and servers say to each other is in anything that the agent says.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use crate::common::{Running, kernel_available};
use crate::live::{Live, json, post, scripted, send, stream};

/// Begins every secret; what follows names its place.
const CANARY: &str = "canary7f3a";

/// A secret, too: whoever has it can test guesses of prompts.
const SALT: &str = "5a175a175a175a175a175a175a175a17";

fn canary(place: &str) -> String {
    format!("{CANARY}{place}")
}

/// Requests and answers with a secret wherever one can be, well-formed and not.
fn traffic() -> Vec<(Vec<u8>, Vec<u8>)> {
    let fields = ["Authorization: Bearer ", "Cookie: session=", "X-Api-Key: ", "User-Agent: "];
    let fields: String =
        fields.iter().map(|name| format!("{name}{}\r\n", canary("field"))).collect();
    let prompt = serde_json::json!({
        "model": canary("model"), "stream": true, "user": canary("user"),
        "messages": [{"role": "user", "content": canary("prompt ").repeat(200)}],
        "tools": [{"type": "function", "function": {"name": canary("tool")}}],
    })
    .to_string();
    let answer_fields = format!(
        "Set-Cookie: a={0}\r\nServer: {0}\r\nX-Request-Id: {1}\r\n",
        canary("setcookie"),
        canary("requestid")
    );
    let good = stream(&answer_fields, &[&canary("answer"), "\u{1b}[31m", &canary("second")]);
    let query = format!("/v1/chat/completions?key={}#{}", canary("query"), canary("fragment"));
    let with_query = String::from_utf8(post(2, &fields, &prompt)).unwrap();
    let with_query = with_query.replace("/v1/chat/completions", &query).into_bytes();
    let status = |code: &str, body: &str| {
        format!("HTTP/1.1 {code}\r\n{answer_fields}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    let refused = status("401 Unauthorized", &format!("{{\"error\":\"{}\"}}", canary("error")));
    let odd = status(&format!("200 {}", canary("phrase")), &canary("text"));
    let in_band = format!("data: {{\"error\":{{\"message\":\"{}\"}}}}\n\n", canary("inband"));
    let broken = |what: &str| {
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{what}\r\n").into_bytes()
    };
    let parent = format!("traceparent: {}\r\n", canary("parent"));
    vec![
        (post(1, &fields, &prompt), good.clone()),
        (with_query, good.clone()),
        (post(3, &fields, &prompt), refused.into_bytes()),
        (post(4, &parent, &prompt), odd.into_bytes()),
        (post(5, &fields, &prompt), broken(&canary("chunk"))),
        (post(6, &fields, &canary("nojson")), status("200 OK", &in_band).into_bytes()),
        (format!("{} / HTTP/1.1\r\n\r\n", canary("method")).into_bytes(), good.clone()),
        (format!("GET /{} {}\r\n\r\n", canary("path"), canary("version")).into_bytes(), good),
        (canary("noise").into_bytes(), canary("noise").into_bytes()),
        (post(7, &fields, &prompt), canary("nohttp").into_bytes()),
    ]
}

/// The paths that are read, as the documentation lists them.
fn documented_paths(window: &str) -> Vec<String> {
    let api = include_str!("../../../docs/agent-api.md");
    let calls = api.split('`').filter_map(|code| code.strip_prefix("GET "));
    let paths: Vec<_> = calls
        .filter_map(|path| path.split([' ', '?']).next())
        .map(|path| path.replace("{id}", window))
        .collect();
    assert!(paths.len() >= 6, "{paths:?}");
    paths
}

fn outputs_of(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_goodput-agent")).args(arguments).output().unwrap();
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// What the system tells others about the process.
fn told_by_proc(pid: u32) -> BTreeMap<String, String> {
    let mut files: Vec<_> =
        ["cmdline", "status", "comm"].map(|it| format!("/proc/{pid}/{it}")).to_vec();
    for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        files.push(task.unwrap().path().join("comm").display().to_string());
    }
    files.into_iter().map(|it| (it.clone(), fs::read_to_string(it).unwrap_or_default())).collect()
}

#[test]
fn no_output_holds_anything_of_prompts_answers_headers_queries_or_tokens() {
    if !kernel_available("secrecy") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (token, jsonl) = (path("token"), path("rows.jsonl"));
    fs::write(&token, canary("token")).unwrap();
    let (requests, answers): (Vec<_>, Vec<_>) = traffic().into_iter().unzip();
    let (vip, backend) = (scripted(answers.clone()), scripted(answers));
    let endpoints = [format!("vip={vip}"), format!("backend={backend}")];
    let arguments = ["--endpoint", &endpoints[0], "--endpoint", &endpoints[1], "--jsonl", &jsonl];
    let more = ["--token-file", &token, "--kernel-log"];
    let mut agent = Live::start(folder.path(), &[&arguments[..], &more].concat(), "trace");
    let bearer = format!("Authorization: Bearer {}\r\n", canary("token"));
    let mut outputs = BTreeMap::from([("ready".to_owned(), agent.ready.clone())]);

    let opened = json(&agent.call(
        "POST",
        "/v1/windows",
        &bearer,
        &format!(r#"{{"label":"all","prefix_salt":"{SALT}"}}"#),
    ));
    let window = opened["window_id"].as_str().unwrap().to_owned();
    for request in &requests {
        send(vip, request);
        send(backend, request);
    }
    let closed = agent.call("POST", &format!("/v1/windows/{window}/close"), &bearer, "");
    let seen = json(&closed)["observations"].as_u64().unwrap();
    assert!(seen >= 12, "the well-formed requests were seen: {closed}");
    outputs.insert("close".to_owned(), closed);
    for path in documented_paths(&window) {
        let answer = agent.call("GET", &path, &bearer, "");
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        outputs.insert(path, answer);
    }
    let query = format!("/v1/{}?key={0}", canary("apipath"));
    outputs.insert("unknown".to_owned(), agent.call("GET", &query, &bearer, ""));
    let wrong = format!("Authorization: Bearer {}\r\n", canary("wrongtoken"));
    outputs.insert("refused".to_owned(), agent.call("GET", "/v1/status", &wrong, ""));
    let url = format!("http://{}", agent.api);
    for view in ["--once", "--json"] {
        let shown = outputs_of(&["top", "--api", &url, "--token-file", &token, view]);
        assert!(shown.contains(&vip.to_string()), "{shown}");
        outputs.insert(format!("top {view}"), shown);
    }
    let doctor =
        ["doctor", "--interface", "lo", "--endpoint", &endpoints[0], "--token-file", &token];
    outputs.insert("doctor".to_owned(), outputs_of(&doctor));
    outputs.extend(told_by_proc(agent.running.0.id()));
    let limits = fs::read_to_string(format!("/proc/{}/limits", agent.running.0.id())).unwrap();
    let cores = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(cores.split_whitespace().nth(4), Some("1"), "no image of its memory is kept");

    agent.signal(Signal::SIGTERM);
    let mut rest = String::new();
    agent.stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(agent.running.0.wait().unwrap().code(), Some(0));
    outputs.insert("stdout".to_owned(), rest);
    for (name, file) in [("log", agent.stderr.clone()), ("jsonl", jsonl.into())] {
        let text = fs::read_to_string(file).unwrap();
        assert!(!text.is_empty(), "{name} says something");
        outputs.insert(name.to_owned(), text);
    }
    assert!(outputs["log"].contains("TRACE"), "the log was at its most talkative");
    assert!(outputs["log"].contains(&format!("to {}", vip.port())), "the kernel's log was on");
    assert_secret(&outputs);
}

fn assert_secret(outputs: &BTreeMap<String, String>) {
    for (name, text) in outputs {
        let lower = text.to_lowercase();
        assert!(!lower.contains(SALT), "{name} holds the salt");
        let at = lower.find(CANARY);
        let around =
            at.map(|at| &lower.as_bytes()[at.saturating_sub(80)..lower.len().min(at + 80)]);
        let around = around.map(String::from_utf8_lossy);
        assert_eq!(around, None, "{name} holds a secret");
    }
}

#[test]
fn an_audits_folder_holds_nothing_of_them_either() {
    if !kernel_available("secrecy of an audit") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (requests, answers): (Vec<_>, Vec<_>) = traffic().into_iter().unzip();
    let vip = scripted(answers);
    let out = folder.path().join("audit");
    let stderr = folder.path().join("stderr");
    let mut command = Command::new(env!("CARGO_BIN_EXE_goodput-agent"));
    command.args(["audit", "--json", "--for", "10m", "--interface", "lo"]);
    command.args(["--endpoint", &format!("vip={vip}"), "--out"]).arg(&out);
    command.env("GOODPUT_LOG", "trace").stdout(Stdio::piped());
    command.stderr(fs::File::create(&stderr).unwrap());
    let mut running = Running(command.spawn().unwrap());
    let mut stdout = BufReader::new(running.0.stdout.take().unwrap());
    let mut said = String::new();
    stdout.read_line(&mut said).unwrap();
    for request in &requests {
        send(vip, request);
    }
    let pid = nix::unistd::Pid::from_raw(i32::try_from(running.0.id()).unwrap());
    nix::sys::signal::kill(pid, Signal::SIGINT).unwrap();
    stdout.read_to_string(&mut said).unwrap();
    running.0.wait().unwrap();
    let mut outputs = BTreeMap::from([("stdout".to_owned(), said)]);
    outputs.insert("log".to_owned(), fs::read_to_string(&stderr).unwrap());
    for entry in fs::read_dir(&out).unwrap() {
        let path = entry.unwrap().path();
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        outputs.insert(path.display().to_string(), text);
    }
    let rows = outputs.values().filter(|text| text.contains("\"trace_id\"")).count();
    assert!(rows > 0, "requests were recorded: {outputs:?}");
    assert_secret(&outputs);
}
