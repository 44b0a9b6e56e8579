//! Against a server that answers from a script, and against nobody.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;

use super::*;

const LEASE: Duration = Duration::from_secs(90);

const KERNEL: &str = concat!(
    r#"{"schema":"goodput.kernel/1","trace_id":null,"endpoint":"127.0.0.1:1","leg":"client"}"#,
    "\n"
);
const INFLIGHT: &str = concat!(
    r#"{"schema":"goodput.inflight/1","start_ns":1,"end_ns":2,"endpoint":"127.0.0.1:1","#,
    r#""role":"vip","requests_mean":0.5,"requests_peak":1,"source":"packets"}"#,
    "\n"
);

/// Answers one connection after the other; gives the request lines it saw, with the authorization.
fn scripted(answers: &'static [(u16, &'static str)]) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve = move || {
        let answer = |(status, body): &(u16, &str)| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut seen, mut length) = (String::new(), 0);
            for line in
                reader.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty())
            {
                let lower = line.to_ascii_lowercase();
                if let Some(value) = lower.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if seen.is_empty() || lower.starts_with("authorization:") {
                    seen.push_str(&line);
                    seen.push('|');
                }
            }
            let mut request_body = vec![0; length];
            reader.read_exact(&mut request_body).unwrap();
            seen.push_str(&String::from_utf8(request_body).unwrap());
            write!(
                stream,
                "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
            seen
        };
        answers.iter().map(answer).collect()
    };
    (url, std::thread::spawn(serve))
}

fn keys(url: &str) -> AgentKeys {
    AgentKeys {
        name: "host".to_owned(),
        url: url.to_owned(),
        role: "host".to_owned(),
        token_file: None,
    }
}

#[test]
fn a_window_is_opened_closed_fetched_and_freed() {
    let account = r#"{"complete":false,"reasons":["ring_full"],"observations":3,"counters":{"endpoint_packets":7,"segments":{"failed":0}}}"#;
    let answers: &[(u16, &str)] = Box::leak(Box::new([
        (201, r#"{"window_id":4,"opened_ns":1}"#),
        (200, account),
        (200, KERNEL),
        (200, INFLIGHT),
        (204, ""),
    ]));
    let (url, server) = scripted(answers);
    let (keys, control) = (keys(&url), Control::new().unwrap());
    let agent = Agent::new(&keys, Some("secret".to_owned()));
    let dir = tempfile::tempdir().unwrap();
    let (kernel, inflight) = (dir.path().join("k"), dir.path().join("i"));
    let window = agent.open(&control, "label", LEASE);
    let files = Files { kernel: &kernel, inflight: &inflight };
    let record = agent.close(&control, &window, files);
    assert_eq!((record.complete, record.observations), (false, Some(3)));
    assert_eq!(
        (record.reasons, record.window_id),
        (vec!["ring_full".to_owned()], Some("4".to_owned()))
    );
    assert_eq!(record.counters["endpoint_packets"], 7);
    assert_eq!(std::fs::read_to_string(kernel).unwrap(), KERNEL);
    assert_eq!(std::fs::read_to_string(inflight).unwrap(), INFLIGHT);
    let seen = server.join().unwrap();
    let lines: Vec<&str> = seen.iter().map(|seen| seen.split('|').next().unwrap()).collect();
    assert_eq!(
        lines,
        [
            "POST /v1/windows HTTP/1.1",
            "POST /v1/windows/4/close HTTP/1.1",
            "GET /v1/windows/4/observations HTTP/1.1",
            "GET /v1/windows/4/inflight HTTP/1.1",
            "DELETE /v1/windows/4 HTTP/1.1",
        ]
    );
    assert!(seen[0].contains(r#""lease_s":90"#), "{seen:?}");
    assert!(
        seen.iter().all(|seen| seen.to_ascii_lowercase().contains("bearer secret")),
        "{seen:?}"
    );
}

#[test]
fn an_agent_that_dies_leaves_an_incomplete_account_and_no_error() {
    let (url, server) = scripted(&[(201, r#"{"window_id":"w","opened_ns":1}"#)]);
    let (keys, control) = (keys(&url), Control::new().unwrap());
    let agent = Agent::new(&keys, None);
    let window = agent.open(&control, "label", LEASE);
    server.join().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (kernel, inflight) = (dir.path().join("k"), dir.path().join("i"));
    let files = Files { kernel: &kernel, inflight: &inflight };
    let record = agent.close(&control, &window, files);
    assert_eq!((record.complete, record.window_id.as_deref()), (false, Some("w")));
    assert_eq!(record.reasons, ["agent_unreachable"]);
    assert!(!kernel.exists());
    let never = agent.close(&control, &agent.open(&control, "label", LEASE), files);
    assert_eq!((never.window_id, never.reasons), (None, vec!["agent_unreachable".to_owned()]));
    assert!(agent.status(&control).unwrap_err().to_string().contains("start the service"));
}

#[test]
fn rows_that_could_not_be_read_again_are_not_written() {
    let (url, server) = scripted(&[
        (201, r#"{"window_id":"w1","opened_ns":1}"#),
        (200, r#"{"complete":true,"reasons":[],"observations":1,"counters":{}}"#),
        (200, "garbage\n"),
        (200, INFLIGHT),
        (204, ""),
    ]);
    let (keys, control) = (keys(&url), Control::new().unwrap());
    let agent = Agent::new(&keys, None);
    let dir = tempfile::tempdir().unwrap();
    let (kernel, inflight) = (dir.path().join("k"), dir.path().join("i"));
    let window = agent.open(&control, "label", LEASE);
    let record = agent.close(&control, &window, Files { kernel: &kernel, inflight: &inflight });
    assert_eq!((record.complete, record.reasons), (false, vec!["agent_bad_answer".to_owned()]));
    assert!(!kernel.exists() && inflight.exists());
    server.join().unwrap();
}

#[test]
fn a_window_that_is_refused_is_named_so() {
    let (url, server) = scripted(&[(409, r#"{"error":"16 windows are kept already"}"#)]);
    let (keys, control) = (keys(&url), Control::new().unwrap());
    let agent = Agent::new(&keys, None);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows");
    let window = agent.open(&control, "label", LEASE);
    let record = agent.close(&control, &window, Files { kernel: &path, inflight: &path });
    assert_eq!((record.complete, record.reasons), (false, vec!["agent_refused_window".to_owned()]));
    server.join().unwrap();
}
