//! Backends and gateway through real sockets.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod support;

use std::net::SocketAddr;

use protocol::cases::{Expected, cases};
use protocol::http1::Framing;
use simfleet::{
    Algorithm, BackendFault, EngineConfig, Fleet, FleetConfig, FleetHandle, GatewayFault, Outcome,
    PolicyConfig,
};
use support::{
    NaiveLru, Reply, call, chat, demo_trace, eventually, fast_engine, page, records, series,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const NS_PER_MS: u64 = 1_000_000;

fn policy(algorithm: Algorithm) -> PolicyConfig {
    PolicyConfig::new(algorithm)
}

async fn gateway_fleet(policy: PolicyConfig) -> FleetHandle {
    let engine = EngineConfig { cache_blocks: 100_000, ..fast_engine() };
    Fleet::start(FleetConfig::loopback(4, &engine).with_gateway("g", policy)).await.unwrap()
}

fn cached_tokens(reply: &Reply) -> u64 {
    let text = reply.text.split("\"cached_tokens\":").nth(1).expect("a usage chunk");
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// Sends the demo trace one request after the other; cached tokens of each.
async fn serve_trace(addr: SocketAddr) -> Vec<u64> {
    let mut hits = Vec::new();
    for (i, row) in (0..).zip(demo_trace()) {
        let reply = call(addr, &chat("sim-model", &row.prompt(), 1, i)).await;
        assert_eq!(reply.record.framing, Framing::Valid);
        hits.push(cached_tokens(&reply));
    }
    hits
}

#[tokio::test(flavor = "multi_thread")]
async fn hit_tokens_of_every_request_equal_an_independent_lru() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("requests.log.jsonl");
    let engine = EngineConfig { cache_blocks: 1_000, ..fast_engine() };
    let config =
        FleetConfig { request_log: Some(log.clone()), ..FleetConfig::loopback(1, &engine) };
    let fleet = Fleet::start(config).await.unwrap();
    let got = serve_trace(fleet.backend(0).unwrap().addr).await;
    let mut lru = NaiveLru { capacity: 1_000, list: Vec::new() };
    let expected: Vec<_> = demo_trace().iter().map(|r| lru.serve(r.full_blocks())).collect();
    assert_eq!(got, expected);
    eventually("the last log line", || records(&log).len() == expected.len()).await;
    // A line is written when the answer is out, and the next request may overtake it.
    let mut lines = records(&log);
    lines.sort_by_key(|record| record.arrival_ns);
    let logged: Vec<_> = lines.iter().map(|r| r.hit_tokens.unwrap()).collect();
    assert_eq!(logged, expected);
    assert_eq!(lines[7].trace_id.as_deref(), Some(format!("{:032x}", 7).as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn ttft_is_queue_plus_uncached_tokens_over_rate() {
    let engine = EngineConfig { prefill_tokens_per_s: 10_000, slots: 2, ..EngineConfig::default() };
    let fleet = Fleet::start(FleetConfig::loopback(1, &engine)).await.unwrap();
    let addr = fleet.backend(0).unwrap().addr;
    // Two prompts of 256 tokens at once: 25.6 ms of prefill, the second one behind the first.
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for round in 0..15 {
        let prompt = |name: &str| format!("{name}{round:08}").repeat(1_024 / 9);
        let (a, b) = (prompt("a"), prompt("b"));
        let tokens = (a.len() as u64).div_ceil(4);
        let (a, b) = (chat("sim-model", &a, 2, 1), chat("sim-model", &b, 2, 2));
        let (a, b) = tokio::join!(call(addr, &a), call(addr, &b));
        let ttft = |r: &Reply| r.record.first_token.unwrap().get() - a.sent.get().min(r.sent.get());
        let mut both = [ttft(&a), ttft(&b)];
        both.sort_unstable();
        let prefill = tokens * 100_000;
        first.push(both[0].abs_diff(prefill));
        second.push(both[1].abs_diff(2 * prefill));
    }
    for errors in [&mut first, &mut second] {
        errors.sort_unstable();
        // A busy host only ever delays: the rounds that it left alone show the model.
        let error = errors[errors.len() / 5];
        assert!(error < 2 * NS_PER_MS, "error {error} ns of {errors:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_has_exactly_max_tokens_and_both_kinds_agree() {
    let fleet = Fleet::start(FleetConfig::loopback(1, &fast_engine())).await.unwrap();
    let addr = fleet.backend(0).unwrap().addr;
    for n in [1, 2, 17] {
        let reply = call(addr, &chat("sim-model", "hello there", n, 0)).await;
        assert_eq!(reply.record.output_tokens().0, n);
        assert_eq!(reply.record.token_events, n);
        assert_eq!(reply.record.framing, Framing::Valid);
    }
    let body = r#"{"prompt":"hello there","max_tokens":3}"#;
    let request = format!(
        "POST /v1/completions HTTP/1.1\r\nhost: s\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let whole = call(addr, request.as_bytes()).await;
    assert!(whole.text.contains(r#""text":" one two three""#), "{}", whole.text);
    assert!(whole.text.contains(r#""prompt_tokens":3,"total_tokens":6,"completion_tokens":3"#));
    let metrics = page(addr, "/metrics").await;
    assert_eq!(series(&metrics, "vllm:generation_tokens_total"), 23);
    assert!(page(addr, "/v1/models").await.contains("\"max_model_len\":131072"));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused_as_vllm_does() {
    let fleet = Fleet::start(FleetConfig::loopback(1, &fast_engine())).await.unwrap();
    let addr = fleet.backend(0).unwrap().addr;
    let status = |r: Reply| r.record.status().unwrap();
    assert_eq!(status(call(addr, &chat("other-model", "x", 1, 0)).await), 404);
    assert_eq!(status(call(addr, &chat("sim-model", "x", 0, 0)).await), 400);
    assert_eq!(status(call(addr, &chat("sim-model", "x", 200_000, 0)).await), 400);
    let broken = b"POST /v1/completions HTTP/1.1\r\ncontent-length: 3\r\n\r\n{{{";
    assert_eq!(status(call(addr, broken).await), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn results_follow_the_algorithm_when_names_are_exchanged() {
    let named =
        |algorithm, name: &str| PolicyConfig { name: Some(name.into()), ..policy(algorithm) };
    let mut shares = Vec::new();
    for config in [
        named(Algorithm::RoundRobin, "round_robin"),
        named(Algorithm::RoundRobin, "cache_aware"),
        named(Algorithm::CacheAware, "cache_aware"),
        named(Algorithm::CacheAware, "round_robin"),
    ] {
        let fleet = gateway_fleet(config).await;
        shares.push(serve_trace(fleet.gateway(0).unwrap().vip).await);
    }
    assert_eq!(shares[0], shares[1], "round robin under either name");
    assert_eq!(shares[2], shares[3], "cache-aware under either name");
    let sum = |i: usize| shares[i].iter().sum::<u64>();
    assert!(sum(2) > 2 * sum(0), "cache-aware {} against round robin {}", sum(2), sum(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_fallback_claims_one_policy_and_does_another() {
    let honest = gateway_fleet(policy(Algorithm::CacheAware)).await;
    let config = PolicyConfig { silent_fallback: true, ..policy(Algorithm::CacheAware) };
    let silent = gateway_fleet(config).await;
    let floor = gateway_fleet(policy(Algorithm::RoundRobin)).await;
    let hits = |fleet: &FleetHandle| serve_trace(fleet.gateway(0).unwrap().vip);
    let (good, bad, plain) = (hits(&honest).await, hits(&silent).await, hits(&floor).await);
    assert_eq!(bad, plain, "it routes round robin");
    assert_ne!(good, bad);
    let n = bad.len() as u64;
    for (fleet, hit) in [(&honest, true), (&silent, false)] {
        let rest = fleet.gateway(0).unwrap().rest;
        let rules = page(rest, "/netlox/v1/config/loadbalancer/all").await;
        assert!(rules.contains("\"kvExactMode\":3"), "{rules}");
        assert!(page(rest, "/netlox/v1/logs").await.contains("[KV_INV] LB mode = \"hard\""));
        let metrics = page(rest, "/netlox/v1/metrics").await;
        let hits = series(&metrics, "loxilb_pd_kv_tier15_hits_total");
        assert_eq!(metrics.contains("loxilb_pd_kv_tier15_hits_total"), hit);
        assert_eq!(hits + series(&metrics, "loxilb_pd_kv_tier15_fallthrough_total"), n);
        assert_eq!(hits + series(&metrics, "loxilb_pd_kv_tier15_miss_reason_total"), n);
    }
    let rest = floor.gateway(0).unwrap().rest;
    let rules = page(rest, "/netlox/v1/config/loadbalancer/all").await;
    assert!(rules.contains("\"sel\":0") && rules.contains("\"kvExactMode\":0"), "{rules}");
    assert!(!page(rest, "/netlox/v1/logs").await.contains("[KV_INV]"));
    assert!(!page(rest, "/netlox/v1/metrics").await.contains("_kv_"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_is_cancelled_at_the_backend() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.jsonl");
    let config = FleetConfig {
        request_log: Some(log.clone()),
        ..FleetConfig::loopback(1, &EngineConfig::default())
    };
    let fleet =
        Fleet::start(config.with_gateway("g", policy(Algorithm::RoundRobin))).await.unwrap();
    for addr in [fleet.gateway(0).unwrap().vip, fleet.backend(0).unwrap().addr] {
        let before = fleet.stats("b0").unwrap().cancelled;
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.write_all(&chat("sim-model", "x", 100_000, 9)).await.unwrap();
        let mut some = [0; 64];
        stream.read_exact(&mut some).await.unwrap();
        drop(stream);
        eventually("the cancellation", || fleet.stats("b0").unwrap().cancelled == before + 1).await;
        assert_eq!(fleet.stats("b0").unwrap().running, 0);
    }
    eventually("the log lines", || records(&log).len() == 2).await;
    assert!(records(&log).iter().all(|r| r.outcome == Outcome::Cancelled));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_holds_chunks_moves_every_token_by_that_much() {
    let config = FleetConfig::loopback(1, &EngineConfig::default())
        .with_gateway("g", policy(Algorithm::RoundRobin));
    let fleet = Fleet::start(config).await.unwrap();
    let vip = fleet.gateway(0).unwrap().vip;
    let ttft = async |n| {
        let reply = call(vip, &chat("sim-model", "x", 5, n)).await;
        assert_eq!(reply.record.token_events, 5);
        reply.record.first_token.unwrap().get() - reply.sent.get()
    };
    let (mut plains, mut helds) = (Vec::new(), Vec::new());
    for n in 0..9 {
        let plain = ttft(n).await;
        assert!(fleet.set_gateway_fault("g", Some("hold_chunks_ms=50".parse().unwrap())));
        let held = ttft(n).await;
        assert!(held >= 50 * NS_PER_MS, "{held} ns");
        assert!(fleet.set_gateway_fault("g", None));
        plains.push(plain);
        helds.push(held);
    }
    // A busy host only ever delays: the quickest of each kind were left alone.
    let moved = helds.iter().min().unwrap() - plains.iter().min().unwrap();
    assert!(moved.abs_diff(50 * NS_PER_MS) < 5 * NS_PER_MS, "{plains:?} against {helds:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_coalesces_joins_token_events() {
    let fleet = gateway_fleet(policy(Algorithm::RoundRobin)).await;
    let wait = std::time::Duration::from_millis(100);
    fleet.set_gateway_fault("g", Some(GatewayFault::Coalesce(wait)));
    let reply = call(fleet.gateway(0).unwrap().vip, &chat("sim-model", "x", 5, 0)).await;
    assert_eq!(reply.record.token_events, 5);
    assert_eq!(reply.record.first_token, reply.record.last_token, "one read held all tokens");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_endpoint_is_passed_over_and_none_at_all_is_an_error() {
    let mut config =
        FleetConfig::loopback(2, &fast_engine()).with_gateway("g", policy(Algorithm::RoundRobin));
    config.backends[0].fault = Some(BackendFault::Refuse);
    let mut all = config.clone();
    let fleet = Fleet::start(config).await.unwrap();
    let vip = fleet.gateway(0).unwrap().vip;
    for n in 0..4 {
        let reply = call(vip, &chat("sim-model", "x", 2, n)).await;
        assert_eq!(reply.record.output_tokens().0, 2);
    }
    let rules = page(fleet.gateway(0).unwrap().rest, "/netlox/v1/config/loadbalancer/all").await;
    assert!(rules.contains("\"inactive\"") && rules.contains("\"active\""), "{rules}");
    all.backends[1].fault = Some(BackendFault::Refuse);
    let fleet = Fleet::start(all).await.unwrap();
    let vip = fleet.gateway(0).unwrap().vip;
    let first = call(vip, &chat("sim-model", "x", 2, 0)).await;
    assert_eq!(first.record.status(), Some(502));
    assert!(first.text.contains("backend_unreachable"));
    let second = call(vip, &chat("sim-model", "x", 2, 0)).await;
    assert_eq!(second.record.status(), Some(503));
    assert!(second.text.contains("no_healthy_backend"));
}

#[tokio::test(flavor = "multi_thread")]
async fn least_connections_follows_what_is_in_flight() {
    let config = FleetConfig::loopback(3, &EngineConfig::default())
        .with_gateway("g", policy(Algorithm::LeastConnections));
    let fleet = Fleet::start(config).await.unwrap();
    let vip = fleet.gateway(0).unwrap().vip;
    let running = || ["b0", "b1", "b2"].map(|name| fleet.stats(name).unwrap().running);
    let mut open = Vec::new();
    for n in 0..7 {
        let mut stream = TcpStream::connect(vip).await.unwrap();
        stream.write_all(&chat("sim-model", "x", 100_000, n)).await.unwrap();
        stream.read_exact(&mut [0; 64]).await.unwrap();
        open.push(stream);
    }
    assert_eq!(running(), [3, 2, 2]);
    // Requests 0, 3 and 6 are at b0: it becomes the least loaded one.
    for left in [6, 3, 0] {
        drop(open.remove(left));
    }
    eventually("the cancellations", || running() == [0, 2, 2]).await;
    for n in 7..10 {
        let mut stream = TcpStream::connect(vip).await.unwrap();
        stream.write_all(&chat("sim-model", "x", 100_000, n)).await.unwrap();
        stream.read_exact(&mut [0; 64]).await.unwrap();
        open.push(stream);
    }
    assert_eq!(running(), [2, 3, 2], "two to b0, then equals in turn");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fault_of_one_request_leaves_the_next_alone() {
    let fleet = gateway_fleet(policy(Algorithm::RoundRobin)).await;
    let vip = fleet.gateway(0).unwrap().vip;
    let ask = async |model: &str| call(vip, &chat(model, "x", 5, 0)).await.record;
    assert_eq!(ask("fault:status=503").await.status(), Some(503));
    assert_eq!(ask("fault:reset_after=2").await.token_events, 2);
    let truncated = ask("fault:truncate_after=3").await;
    assert_eq!((truncated.token_events, truncated.framing), (3, Framing::Incomplete));
    assert_eq!(ask("sim-model").await.token_events, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn stalls_and_half_dead_backends_last_until_the_client_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.jsonl");
    let config = FleetConfig {
        request_log: Some(log.clone()),
        ..FleetConfig::loopback(1, &EngineConfig::default())
    };
    let fleet = Fleet::start(config).await.unwrap();
    for (model, tokens) in [("fault:stall_after=2", 2), ("fault:half_dead", 0)] {
        let mut stream = TcpStream::connect(fleet.backend(0).unwrap().addr).await.unwrap();
        stream.write_all(&chat(model, "x", 50, 1)).await.unwrap();
        let (mut seen, mut buffer) = (String::new(), [0; 4_096]);
        while seen.matches("\"content\":\" ").count() < tokens {
            let n = stream.read(&mut buffer).await.unwrap();
            assert_ne!(n, 0, "the backend closed first");
            seen.push_str(&String::from_utf8_lossy(&buffer[..n]));
        }
        assert!(
            !log.exists() || records(&log).iter().all(|r| r.fault.as_deref() != Some(&model[6..]))
        );
        drop(stream);
        let ended = || records(&log).iter().any(|r| r.fault.as_deref() == Some(&model[6..]));
        eventually("the log line", ended).await;
        let record = records(&log).pop().unwrap();
        assert_eq!((record.outcome, record.output_tokens), (Outcome::Fault, tokens as u64));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metrics_tick_keeps_the_page_as_it_was() {
    let mut config =
        FleetConfig::loopback(1, &fast_engine()).with_gateway("g", policy(Algorithm::RoundRobin));
    config.gateways[0].metrics_tick = Some(std::time::Duration::from_secs(3_600));
    let ticking = Fleet::start(config.clone()).await.unwrap();
    config.gateways[0].metrics_tick = None;
    let at_once = Fleet::start(config).await.unwrap();
    for (fleet, counted) in [(ticking, 0), (at_once, 1)] {
        let gateway = fleet.gateway(0).unwrap();
        let before = page(gateway.rest, "/netlox/v1/metrics").await;
        assert_eq!(series(&before, "loxilb_ai_requests_total"), 0);
        call(gateway.vip, &chat("sim-model", "x", 1, 0)).await;
        let after = page(gateway.rest, "/netlox/v1/metrics").await;
        assert_eq!(series(&after, "loxilb_ai_requests_total"), counted);
    }
}

/// Stalls end only with the client, so their outcome is the client's deadline, not the bytes.
#[tokio::test(flavor = "multi_thread")]
async fn every_script_arrives_as_it_was_written_directly_and_through_the_gateway() {
    let fleet = gateway_fleet(policy(Algorithm::RoundRobin)).await;
    let addrs = [fleet.backend(0).unwrap().addr, fleet.gateway(0).unwrap().vip];
    for (i, addr) in addrs.into_iter().enumerate() {
        let mut running = tokio::task::JoinSet::new();
        for case in cases() {
            running.spawn(async move {
                let request = chat(&format!("fault:{}", case.name), "x", 5, 0);
                let limit = std::time::Duration::from_secs(5);
                let reply = tokio::time::timeout(limit, call(addr, &request)).await;
                (case, reply.ok())
            });
        }
        for (case, reply) in running.join_all().await {
            let Some(reply) = reply else {
                let framing = case.replay().framing;
                assert_ne!(framing, Framing::Valid, "{}: no end within 5 s", case.name);
                continue;
            };
            check_case(i == 1, &case.expect, case.name, &reply);
        }
    }
}

fn check_case(through_gateway: bool, expect: &Expected, name: &str, reply: &Reply) {
    if through_gateway && name.ends_with("before_response") {
        assert_eq!(reply.record.status(), Some(502), "{name}");
        return;
    }
    let got = Expected::observed(&reply.record, reply.sent);
    assert_eq!((got.outcome, got.framing), (expect.outcome, expect.framing), "{name}");
    assert_eq!(got.output_tokens, expect.output_tokens, "{name}");
    assert_eq!(got.token_events, expect.token_events, "{name}");
}
