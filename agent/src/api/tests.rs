//! The API over a real socket and a scripted source.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::clock::{Clock, Monotonic};
use crate::endpoint::{Endpoint, Role};
use crate::evidence::Subject;
use crate::flow::FlowLimits;
use crate::testing::{Script, Talk, endpoint, scripted, stream};
use crate::worker::{self, Engine, EngineConfig};

struct Served {
    address: SocketAddr,
    script: Script,
    access: Arc<Access>,
    _runtime: tokio::runtime::Runtime,
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Errors say what is wrong and what to do about it.
    fn assert_error(&self, status: u16) {
        assert_eq!(self.status, status, "{}", self.body);
        let body = self.json();
        assert!(!body["error"].as_str().unwrap().is_empty());
        assert!(!body["mend"].as_str().unwrap().is_empty());
    }
}

fn serving(token: Option<&str>) -> Served {
    serving_within(token, ApiLimits::default())
}

fn serving_within(token: Option<&str>, limits: ApiLimits) -> Served {
    let (script, source) = scripted();
    let endpoints = vec![Endpoint { address: endpoint(), role: Role::Vip }];
    let config = EngineConfig {
        endpoints,
        interfaces: BTreeMap::new(),
        interval_ns: 100_000_000,
        limits: FlowLimits::default(),
        jsonl: None,
        clock: Arc::new(Monotonic),
    };
    let (handle, _) = worker::start(Engine::new(Box::new(source), config)).unwrap();
    let about = About {
        name: "test".to_owned(),
        kernel: "6.18".to_owned(),
        source: "scripted",
        started: Nanos::new(1),
        started_unix_s: 1.0,
        ring_bytes: 4096,
        interfaces: vec![InterfaceName { name: "lo".to_owned(), index: 1 }],
        sockdiag: Sockdiag::default(),
        evidence: Arc::new(Collector::new(Subject::default(), Arc::new(Monotonic))),
        discovery: None,
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let access = Arc::new(Access::new(token.and_then(Token::new)));
    let router = router(handle, about, Arc::clone(&access), limits);
    runtime.spawn(serve(listener, router, Arc::clone(&access), limits));
    Served { address, script, access, _runtime: runtime }
}

impl Served {
    fn call_with(&self, method: &str, path: &str, fields: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\
             Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    fn call(&self, method: &str, path: &str, body: &str) -> Answer {
        self.call_with(method, path, "", body)
    }

    fn open(&self) -> String {
        let answer = self.call("POST", "/v1/windows", r#"{"label":"rr-r40/rep1"}"#);
        assert_eq!(answer.status, 201, "{}", answer.body);
        assert!(answer.json()["opened_ns"].as_u64().unwrap() > 0);
        answer.json()["window_id"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_window_is_opened_filled_closed_fetched_and_freed() {
    let served = serving(None);
    let id = served.open();
    let mut talk = Talk::open_at(1, 1, Clock::now(&Monotonic).get());
    talk.request(&crate::testing::post(1, "")).response(&stream(2)).client_fin().endpoint_fin();
    served.script.packets(&talk.packets);
    let closing = served.call("POST", &format!("/v1/windows/{id}/close"), r#"{"drain_ms":1000}"#);
    assert_eq!(closing.status, 200, "{}", closing.body);
    let closing = closing.json();
    assert_eq!(closing["complete"], true, "{closing}");
    assert_eq!(closing["reasons"], json!([]));
    assert_eq!(closing["observations"], 1);
    assert_eq!(closing["label"], "rr-r40/rep1");
    assert_eq!(closing["counters"]["segments"]["attempted"], 6);
    assert_eq!(closing["counters"]["segments"]["consumed"], 6);
    let rows = served.call("GET", &format!("/v1/windows/{id}/observations"), "");
    assert!(rows.head.contains("content-type: application/x-ndjson"), "{}", rows.head);
    assert_eq!(rows.body.lines().count(), 1);
    assert_eq!(rows.json()["leg"], "client");
    let inflight = served.call("GET", &format!("/v1/windows/{id}/inflight"), "");
    let first: Value = serde_json::from_str(inflight.body.lines().next().unwrap()).unwrap();
    assert_eq!(first["schema"], "goodput.inflight/1");
    assert_eq!(served.call("DELETE", &format!("/v1/windows/{id}"), "").status, 204);
    served.call("GET", &format!("/v1/windows/{id}/observations"), "").assert_error(404);
}

#[test]
fn a_lease_is_asked_for_answered_and_bounded() {
    let served = serving(None);
    let usual = served.call("POST", "/v1/windows", r#"{"label":"a"}"#).json();
    assert_eq!(usual["lease_s"], 3600);
    let asked = served.call("POST", "/v1/windows", r#"{"label":"a","lease_s":7}"#).json();
    assert_eq!(asked["lease_s"], 7);
    for lease in ["0", "604801"] {
        let body = format!(r#"{{"label":"a","lease_s":{lease}}}"#);
        served.call("POST", "/v1/windows", &body).assert_error(400);
        let body = format!(r#"{{"lease_s":{lease}}}"#);
        served.call("POST", "/v1/windows/w1/close", &body).assert_error(400);
    }
    assert_eq!(served.call("POST", "/v1/windows/w1/close", r#"{"lease_s":9}"#).status, 200);
}

#[test]
fn a_window_whose_lease_ran_out_is_gone() {
    let answer = ApiError::from(crate::window::WindowError::Expired);
    assert_eq!(axum::response::IntoResponse::into_response(answer).status(), 410);
}

#[test]
fn legs_of_a_window_are_paired_and_their_delivery_counted() {
    let served = serving(None);
    let id = served.open();
    let mut talk = Talk::open_at(1, 1, Clock::now(&Monotonic).get());
    talk.request(&crate::testing::post(1, "")).response(&stream(2)).client_fin().endpoint_fin();
    served.script.packets(&talk.packets);
    let close = served.call("POST", &format!("/v1/windows/{id}/close"), r#"{"drain_ms":1000}"#);
    assert_eq!(close.json()["observations"], 1, "{}", close.body);
    let legs = served.call("GET", &format!("/v1/windows/{id}/legs"), "");
    assert!(legs.head.contains("content-type: application/x-ndjson"), "{}", legs.head);
    let row = legs.json();
    assert_eq!(
        (&row["schema"], &row["unmatched"]),
        (&json!("goodput.legs/1"), &json!("no_backend_leg"))
    );
    let path = format!("/v1/windows/{id}/delivery");
    let delivery = served.call("GET", &format!("{path}?slow_ms=5"), "").json();
    assert_eq!(delivery["schema"], "goodput.delivery/1");
    assert_eq!((&delivery["window_id"], &delivery["complete"]), (&json!(id), &json!(true)));
    assert_eq!(delivery["unmatched"]["client"]["no_backend_leg"], 1);
    assert_eq!(delivery["slow_ms"], 5.0);
    served.call("GET", &format!("{path}?slow_ms=soon"), "").assert_error(400);
    served.call("GET", "/v1/windows/w99/legs", "").assert_error(404);
    served.call("GET", "/v1/windows/w99/delivery", "").assert_error(404);
}

#[test]
fn status_and_gauges_have_the_documented_keys() {
    let served = serving(None);
    let status = served.call("GET", "/v1/status", "").json();
    for key in [
        "schema",
        "name",
        "version",
        "kernel",
        "clock",
        "source",
        "started_ns",
        "now_ns",
        "interfaces",
        "endpoints",
        "counters",
        "complete",
        "reasons",
    ] {
        assert!(!status[key].is_null(), "{key}");
    }
    assert_eq!(status["schema"], "goodput.agent-status/1");
    assert_eq!(status["endpoints"][0], json!({"address": "10.0.0.1:8000", "role": "vip"}));
    let gauges = served.call("GET", "/v1/inflight", "").json();
    assert_eq!(gauges["schema"], "goodput.gauges/1");
    let gauge = gauges["endpoints"][0].as_object().unwrap();
    assert_eq!((&gauge["requests"], &gauge["drift"]), (&0.into(), &Value::Null));
    let documented = include_str!("../../../docs/agent-api.md");
    for key in gauge.keys() {
        assert!(documented.contains(&format!("`{key}`")), "{key} is not documented");
    }
    let id = served.open();
    let told = served.call("GET", &format!("/v1/windows/{id}/concentration"), "").json();
    assert_eq!(
        (&told["schema"], &told["window_id"]),
        (&"goodput.concentration/1".into(), &id.into())
    );
    // A virtual address is no backend.
    assert_eq!((&told["roles"], &gauges["concentration"]), (&json!([]), &json!([])));
    served.call("GET", "/v1/windows/w99/concentration", "").assert_error(404);
}

#[test]
fn evidence_is_served_and_no_discovery_is_none() {
    let served = serving(None);
    let evidence = served.call("GET", "/v1/evidence", "").json();
    assert_eq!(evidence["schema"], "goodput.evidence/1");
    // No process has an empty name.
    assert_eq!(evidence["processes"]["value"], json!([]));
    let documented = include_str!("../../../docs/formats.md");
    for key in evidence.as_object().unwrap().keys() {
        assert!(documented.contains(&format!("`{key}`")), "{key} is not documented");
    }
    assert_eq!(served.call("GET", "/v1/status", "").json()["discovery"], Value::Null);
}

#[test]
fn bad_calls_get_an_error_and_its_mend() {
    let served = serving(None);
    let id = served.open();
    let close = format!("/v1/windows/{id}/close");
    served.call("POST", "/v1/windows", "{").assert_error(400);
    served.call("POST", "/v1/windows", r#"{"labels":"x"}"#).assert_error(400);
    served.call("POST", &close, r#"{"drain_ms":-1}"#).assert_error(400);
    served.call("POST", "/v1/windows/w99/close", "{}").assert_error(404);
    served.call("DELETE", "/v1/windows/nope", "").assert_error(404);
    served.call("GET", "/v2/status", "").assert_error(404);
    served.call("PUT", "/v1/status", "").assert_error(405);
    assert_eq!(served.call("POST", &close, "").status, 200);
    served.call("POST", &close, "{}").assert_error(409);
    (1..16).for_each(|_| drop(served.open()));
    served.call("POST", "/v1/windows", r#"{"label":"one too many"}"#).assert_error(409);
}

#[test]
fn every_call_needs_the_token_where_there_is_one() {
    let served = serving(Some("s3cret\n"));
    for path in ["/v1/status", "/v1/inflight", "/v1/nothing"] {
        served.call("GET", path, "").assert_error(401);
        let wrong = "Authorization: Bearer s3cre\r\n";
        served.call_with("GET", path, wrong, "").assert_error(401);
    }
    let right = "Authorization: bearer s3cret\r\n";
    assert_eq!(served.call_with("GET", "/v1/status", right, "").status, 200);
}

#[test]
fn a_changed_token_counts_from_the_next_call_on() {
    let served = serving(None);
    assert_eq!(served.call("GET", "/v1/status", "").status, 200);
    served.access.set_token(Token::new("new"));
    served.call("GET", "/metrics", "").assert_error(401);
    let right = "Authorization: Bearer new\r\n";
    let answer = served.call_with("GET", "/metrics", right, "");
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("application/openmetrics-text; version=1.0.0"), "{}", answer.head);
    assert!(answer.head.contains("x-content-type-options: nosniff"), "{}", answer.head);
    assert!(crate::metrics::parse(&answer.body).is_ok(), "{}", answer.body);
}

#[test]
fn a_slow_head_a_slow_body_and_one_connection_too_many_end() {
    let short = std::time::Duration::from_millis(200);
    let limits = ApiLimits {
        connections: 1,
        head_timeout: short,
        body_timeout: short,
        ..Default::default()
    };
    let served = serving_within(None, limits);
    let read = |mut stream: TcpStream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let mut slow = TcpStream::connect(served.address).unwrap();
    slow.write_all(b"GET /v1/status HTTP/1.1\r\nHo").unwrap();
    let refused = read(TcpStream::connect(served.address).unwrap());
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("mend"), "{refused}");
    // Its end is what frees the only place.
    assert!(!read(slow).contains("200 OK"));
    let mut slow = TcpStream::connect(served.address).unwrap();
    slow.write_all(
        b"POST /v1/windows HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 9\r\n\r\n{",
    )
    .unwrap();
    assert!(read(slow).starts_with("HTTP/1.1 408"));
}

#[test]
fn answers_escape_what_they_repeat_and_bound_what_they_keep() {
    let served = serving(None);
    let hostile = "{\"<script>\u{1b}[31m\\u0007\":1}";
    let answer = served.call("POST", "/v1/windows", hostile);
    answer.assert_error(400);
    assert!(answer.body.bytes().all(|byte| byte >= 0x20), "{:?}", answer.body);
    let long = format!(r#"{{"label":"{}"}}"#, "x".repeat(257));
    served.call("POST", "/v1/windows", &long).assert_error(400);
    let large = format!(r#"{{"label":"{}"}}"#, "x".repeat(70_000));
    served.call("POST", "/v1/windows", &large).assert_error(413);
}

const SALT: &str = "000102030405060708090a0b0c0d0e0f";

impl Served {
    fn open_salted(&self, salt: &str) -> String {
        let body = format!(r#"{{"label":"audit","prefix_salt":"{salt}"}}"#);
        let answer = self.call("POST", "/v1/windows", &body);
        assert_eq!(answer.status, 201, "{}", answer.body);
        assert!(!answer.body.contains(salt));
        answer.json()["window_id"].as_str().unwrap().to_owned()
    }

    fn prefixes(&self, id: &str) -> String {
        assert_eq!(self.call("POST", &format!("/v1/windows/{id}/close"), "").status, 200);
        let answer = self.call("GET", &format!("/v1/windows/{id}/prefixes"), "");
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }
}

/// Windows with one salt tell the same hashes, another salt gives others, and a window without one has
/// none. No answer holds prompt or salt.
#[test]
fn prefixes_of_prompts_are_told_to_who_gave_a_salt() {
    let served = serving(None);
    let windows = [SALT, SALT, &SALT.replace('0', "9")].map(|salt| served.open_salted(salt));
    let unsalted = served.open();
    let body = format!(r#"{{"prompt":"{}"}}"#, "canary ".repeat(800));
    let mut talk = Talk::open_at(1, 1, Clock::now(&Monotonic).get());
    let request = crate::testing::post(1, &body);
    talk.request(&request).response(&stream(2)).client_fin().endpoint_fin();
    served.script.packets(&talk.packets);
    let [one, same, other] = windows.map(|id| served.prefixes(&id));
    let row: Value = serde_json::from_str(&one).unwrap();
    assert_eq!((&row["schema"], &row["prompt_end"]), (&json!("goodput.prefix/1"), &json!("whole")));
    assert_eq!(row["prompt_bytes"], 5602);
    let hashes = row["prefixes"].as_array().unwrap();
    assert!(hashes[..2].iter().all(|hash| hash.as_str().unwrap().len() == 32));
    assert_eq!(hashes[2..], [Value::Null, Value::Null]);
    assert_eq!(one, same);
    assert_ne!(one, other);
    for text in [&one, &other] {
        assert!(!text.contains("canary") && !text.contains(SALT));
    }
    served.call("GET", &format!("/v1/windows/{unsalted}/prefixes"), "").assert_error(409);
    let rows = served.call("GET", &format!("/v1/windows/{unsalted}/observations"), "").body;
    assert!(!rows.contains("prefixes"), "rows of kernel.jsonl have no hashes");
}

#[test]
fn a_salt_of_another_form_is_refused_and_not_repeated() {
    let served = serving(None);
    for salt in ["\"5ec2e7\"", "77123456", "[\"5ec2e7\"]", "\"zz0102030405060708090a0b0c0d0e0f\""] {
        let body = format!(r#"{{"label":"audit","prefix_salt":{salt}}}"#);
        let answer = served.call("POST", "/v1/windows", &body);
        answer.assert_error(400);
        assert!(!answer.body.contains(salt.trim_matches('"')), "{}", answer.body);
    }
}
