//! Rules as LoxiLB writes them, and servers that do not.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};

use super::*;
use crate::endpoint::Role;

fn endpoint(text: &str) -> Endpoint {
    text.parse().unwrap()
}

const RULES: &str = r#"{"lbAttr":[
    {"serviceArguments":{"externalIP":"10.0.0.10","port":8000,"protocol":"tcp","sel":0,"mode":4},
     "endpoints":[{"endpointIP":"10.0.1.1","targetPort":9000,"weight":1,"ep_role":1,"state":"active"},
                  {"endpointIP":"10.0.1.2","targetPort":9000,"ep_role":2,"nixl_port":5600}]},
    {"serviceArguments":{"externalIP":"10.0.0.11","port":8000,"protocol":"tcp"},
     "endpoints":[{"endpointIP":"10.0.1.1","targetPort":9000},
                  {"endpointIP":"10.0.0.10","targetPort":8000},
                  {"endpointIP":"worker.example","targetPort":9000},
                  {"endpointIP":"10.0.1.3","targetPort":70000}]},
    {"serviceArguments":{"externalIP":"10.0.0.12","port":53,"protocol":"udp"},
     "endpoints":[{"endpointIP":"10.0.1.4","targetPort":53}]},
    {"serviceArguments":{"externalIP":"0.0.0.0","port":80,"protocol":"tcp"},"endpoints":null}
]}"#;

#[test]
fn services_are_vips_and_endpoints_have_their_phase() {
    let found = parse(RULES.as_bytes()).unwrap();
    let expected = [
        "vip=10.0.0.10:8000",
        "vip=10.0.0.11:8000",
        "prefill=10.0.1.1:9000",
        "decode=10.0.1.2:9000",
    ];
    assert_eq!(found.endpoints, expected.map(endpoint));
    // A name, a port too large, a service of another protocol with its endpoint, and no address.
    assert_eq!(found.ignored, 5);
    assert_eq!(parse(br#"{"lbAttr":[]}"#).unwrap(), Found::default());
    assert_eq!(parse(br#"{"lbAttr":null}"#).unwrap(), Found::default());
}

#[test]
fn what_holds_no_rules_is_an_error_with_its_mend() {
    for body in ["", "[]", "\"disabled\"", "{\"lbAttr\":5}", "{\"lbAttr\":[{\"endpoints\":7}]}"] {
        let error = parse(body.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("loxilb_url"), "{error}");
    }
    let rule = |n| {
        format!(r#"{{"serviceArguments":{{"externalIP":"10.0.0.1","port":{n},"protocol":"tcp"}}}}"#)
    };
    let many: Vec<String> = (1..=1025).map(rule).collect();
    let error = parse(format!(r#"{{"lbAttr":[{}]}}"#, many.join(",")).as_bytes()).unwrap_err();
    assert!(matches!(error, RulesError::TooMany(1025)), "{error}");
}

#[test]
fn what_is_configured_wins_over_what_is_found() {
    let configured = [endpoint("backend=10.0.1.1:9000"), endpoint("vip=10.0.0.1:80")];
    let found = [endpoint("prefill=10.0.1.1:9000"), endpoint("decode=10.0.1.2:9000")];
    let all = merged(&configured, &found);
    let expected = ["vip=10.0.0.1:80", "backend=10.0.1.1:9000", "decode=10.0.1.2:9000"];
    assert_eq!(all, expected.map(endpoint));
    assert_eq!(all[1].role, Role::Backend);
}

#[test]
fn a_target_is_an_address_and_its_error_repeats_no_secret() {
    for url in
        ["http://127.0.0.1:11111", "http://127.0.0.1:11111/", "http://127.0.0.1:11111/netlox/v1"]
    {
        let target: Target = url.parse().unwrap();
        assert_eq!(target.to_string(), "http://127.0.0.1:11111");
    }
    for url in ["", "127.0.0.1:1", "https://127.0.0.1:1", "http://localhost:1", "http://127.0.0.1"]
    {
        assert!(url.parse::<Target>().is_err(), "{url}");
    }
    let error = "http://user:canary@127.0.0.1:1".parse::<Target>().unwrap_err().to_string();
    assert!(!error.contains("canary"), "{error}");
}

/// A server that gives one connection `answer` and closes it.
fn answering(answer: Vec<u8>) -> Target {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"GET /netlox/v1/config/loadbalancer/all HTTP/1.1\r\n"));
        // The reader of an answer that is too large leaves.
        let _ = stream.write_all(&answer);
    });
    format!("http://{address}").parse().unwrap()
}

fn response(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

#[test]
fn rules_are_read_whatever_the_framing() {
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n{\"lbAttr\":[]}\r\n0\r\n\r\n";
    let closed = b"HTTP/1.1 200 OK\r\n\r\n{\"lbAttr\":[]}";
    for answer in [response("200 OK", r#"{"lbAttr":[]}"#), chunked.to_vec(), closed.to_vec()] {
        assert_eq!(read(&answering(answer)).unwrap(), Found::default());
    }
}

#[test]
fn answers_that_cannot_be_used_are_errors() {
    let error = |answer| read(&answering(answer)).unwrap_err();
    let status = error(response("503 Busy", "{}"));
    assert!(matches!(status, DiscoveryError::Fetch(FetchError::Status { status: 503, .. })));
    let cut = error(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}".to_vec());
    assert!(matches!(cut, DiscoveryError::Fetch(FetchError::Broken { .. })), "{cut}");
    let noise = error(b"SSH-2.0-x\r\n".to_vec());
    assert!(matches!(noise, DiscoveryError::Fetch(FetchError::Broken { .. })), "{noise}");
    let huge = error(response("200 OK", &" ".repeat(MAX_BODY + 1)));
    assert!(matches!(huge, DiscoveryError::Fetch(FetchError::TooLarge { .. })), "{huge}");
    let gone: Target = "http://127.0.0.1:1".parse().unwrap();
    let refused = read(&gone).unwrap_err();
    assert!(matches!(refused, DiscoveryError::Fetch(FetchError::NoAnswer { .. })), "{refused}");
}

#[test]
fn a_silent_server_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target: Target = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let error = fetch(&target, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, FetchError::NoAnswer { .. }), "{error}");
}

#[test]
fn failures_are_told_and_the_last_good_reading_stays() {
    let target: Target = "http://127.0.0.1:1".parse().unwrap();
    let status = DiscoveryStatus::new(&target, Duration::from_secs(5));
    let found = Found { endpoints: vec![endpoint("vip=10.0.0.1:80")], ignored: 2 };
    status.good(protocol::Nanos::new(7), &found, true);
    assert!(status.failed(&"x".repeat(1000)));
    assert!(!status.failed("again"));
    let view = serde_json::to_value(status.view()).unwrap();
    assert_eq!((&view["endpoints"], &view["ignored"]), (&1.into(), &2.into()));
    assert_eq!((&view["last_good_ns"], &view["failing"]), (&7.into(), &true.into()));
    assert_eq!(view["last_error"], "again");
    let expected = DiscoveryCounts { applied: 1, unchanged: 0, failed: 2, endpoints: 1 };
    assert_eq!(status.counts(), expected);
}
