//! A running agent with everything that it says, and a server that answers from a script.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::Running;

/// How long anything on loopback may take on a loaded host.
const PATIENCE: Duration = Duration::from_secs(60);

/// `goodput-agent run` on `lo`.
pub(crate) struct Live {
    pub(crate) running: Running,
    pub(crate) api: String,
    pub(crate) stderr: PathBuf,
    pub(crate) stdout: BufReader<std::process::ChildStdout>,
    pub(crate) ready: String,
}

impl Live {
    /// Starts it and waits until it watches; stderr goes to a file in `folder`.
    pub(crate) fn start(folder: &Path, arguments: &[&str], log: &str) -> Self {
        let stderr = folder.join("stderr");
        let mut command = Command::new(env!("CARGO_BIN_EXE_goodput-agent"));
        command.args(["run", "--interface", "lo", "--api", "127.0.0.1:0"]).args(arguments);
        command.env("GOODPUT_LOG", log).stdout(Stdio::piped());
        command.stderr(File::create(&stderr).unwrap());
        let mut running = Running(command.spawn().unwrap());
        let mut stdout = BufReader::new(running.0.stdout.take().unwrap());
        let mut ready = String::new();
        stdout.read_line(&mut ready).unwrap();
        let said = || std::fs::read_to_string(&stderr).unwrap();
        let parsed: Value =
            serde_json::from_str(&ready).unwrap_or_else(|_| unreachable!("{}", said()));
        let api = parsed["api"].as_str().unwrap().to_owned();
        Self { running, api, stderr, stdout, ready }
    }

    /// One call of the API, with more header fields; the whole answer.
    pub(crate) fn call(&self, method: &str, path: &str, fields: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.api).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.running.0.id()).unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
    }
}

/// The JSON of an answer.
pub(crate) fn json(answer: &str) -> Value {
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    serde_json::from_str(body).unwrap_or_else(|_| unreachable!("{answer}"))
}

/// Asks again until the answer is as wanted.
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
    }
}

/// Answers one connection after the other, each from its script, once its request has ended.
pub(crate) fn scripted(answers: Vec<Vec<u8>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            // The client ends its side when it has sent everything.
            let mut request = Vec::new();
            let _ = stream.read_to_end(&mut request);
            let _ = stream.write_all(&answer);
        }
    });
    address
}

/// Sends a request and reads what comes.
pub(crate) fn send(address: SocketAddr, request: &[u8]) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
}

/// A request for a stream.
pub(crate) fn post(number: u8, fields: &str, body: &str) -> Vec<u8> {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n{fields}\
         traceparent: 00-4bf92f3577b34da6a3ce929d0e0e47{number:02x}-00f067aa0ba902b7-00\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A stream of one event per text, with more header fields.
pub(crate) fn stream(fields: &str, contents: &[&str]) -> Vec<u8> {
    let mut out = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{fields}\
         Transfer-Encoding: chunked\r\n\r\n"
    );
    let content = |text: &&str| {
        let delta = serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}}]});
        format!("data: {delta}\n\n")
    };
    let finish = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let events =
        contents.iter().map(content).chain([finish, "data: [DONE]\n\n"].map(str::to_owned));
    for event in events {
        out += &format!("{:x}\r\n{event}\r\n", event.len());
    }
    (out + "0\r\n\r\n").into_bytes()
}
