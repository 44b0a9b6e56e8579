//! A clean replay: client, kernel and simulator tell the same of every request.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use std::collections::BTreeMap;

use e2e::agent::{Agent, Watch, Window, ttft_ns};
use e2e::cross_check::cross_check;
use e2e::fleet::Fleet;
use e2e::jsonl::{number, text};
use e2e::numbers::quantile;
use e2e::replay::Replay;
use e2e::require_kernel;
use e2e::trace::Trace;
use serde_json::Value;

const FLEET: &str = "
[engine]
[[backend]]
name = 'b0'
[[backend]]
name = 'b1'
[[backend]]
name = 'b2'
[[gateway]]
name = 'vip'
policy = { algorithm = 'cache_aware' }
";
const ROWS: usize = 60;

#[test]
fn client_kernel_and_simulator_agree_on_every_request() -> anyhow::Result<()> {
    require_kernel!();
    let fleet = Fleet::start(FLEET)?;
    let backends = fleet.backends()?;
    let watch = Watch {
        interfaces: vec!["lo"],
        api: "127.0.0.1:0",
        vips: vec![fleet.vip("vip")?],
        backends: backends.iter().map(|(_, address)| *address).collect(),
    };
    let agent = Agent::start(&watch)?;
    let trace = Trace { rows: ROWS, groups: 5, blocks: 3, output_tokens: 8 }.text();
    let replay = Replay {
        to: fleet.vip("vip")?,
        trace: &trace,
        rate: 20.0,
        more: &["--model", "sim-model"],
    };
    let folder = tempfile::tempdir()?;
    let (requests, window) = agent.api().window("clean", || replay.run(folder.path()))?;

    assert_eq!(requests.len(), ROWS);
    window.ensure_complete()?;
    assert_classes(&requests, &window);
    assert_instants(&requests, &window);
    let log = fleet.log()?;
    assert_hits(&requests, &window, &log);
    assert_shares(&window, &log, &backends.into_iter().collect());
    let joined = cross_check(&requests, &[&window])?;
    assert_eq!((joined.on_client_leg, joined.on_backend_leg), (ROWS as u64, ROWS as u64));
    assert!(joined.disagreements.is_empty(), "{:?}", joined.disagreements);
    assert!(joined.packets_counted >= Some(joined.packets_expected), "{joined:?}");
    Ok(())
}

fn legs<'a>(request: &Value, window: &'a Window) -> [&'a Value; 2] {
    let id = text(request, "trace_id");
    ["client", "backend"].map(|leg| {
        window.leg(id, leg).unwrap_or_else(|| panic!("request {id} was not seen on its {leg} leg"))
    })
}

fn assert_classes(requests: &[Value], window: &Window) {
    for request in requests {
        assert_eq!(text(request, "class"), "ok", "{request}");
        for leg in legs(request, window) {
            assert_eq!((text(leg, "outcome"), text(leg, "framing")), ("ok", "valid"), "{leg}");
        }
    }
}

/// Client minus kernel on the client leg: the client's stamp cannot come before the kernel's but for
/// the clock read before its write; and 5 ms is what the product claims at these sizes.
fn assert_instants(requests: &[Value], window: &Window) {
    let difference = |request: &Value| {
        let [client, _] = legs(request, window);
        number(request, "ttft_from_sent_ns").unwrap() - ttft_ns(client).unwrap()
    };
    let differences: Vec<_> = requests.iter().map(difference).collect();
    let [min, p50, p99] = [0, 50, 99].map(|per_cent| quantile(&differences, per_cent).unwrap());
    eprintln!("client minus kernel TTFT: min {min} ns, p50 {p50} ns, p99 {p99} ns");
    assert!(min >= -50_000 && p99 <= 5_000_000, "min {min} ns, p99 {p99} ns");
}

fn assert_hits(requests: &[Value], window: &Window, log: &[Value]) {
    let mut total = 0;
    for request in requests {
        let id = text(request, "trace_id");
        let logged = log.iter().find(|row| text(row, "trace_id") == id).unwrap();
        let hits = number(logged, "hit_tokens").unwrap();
        assert_eq!(number(request, "cached_tokens"), Some(hits), "{request}");
        for leg in legs(request, window) {
            assert_eq!(number(leg, "cached_tokens"), Some(hits), "{leg}");
        }
        total += hits;
    }
    eprintln!("prefix hits: {total} tokens");
    assert!(total > 0, "a trace with shared prefixes must find some of them cached");
}

fn assert_shares(
    window: &Window,
    log: &[Value],
    addresses: &BTreeMap<String, std::net::SocketAddr>,
) {
    let mut logged = BTreeMap::new();
    for row in log {
        *logged.entry(addresses[text(row, "backend")].to_string()).or_insert(0) += 1;
    }
    let mut seen = BTreeMap::new();
    for row in window.observations.iter().filter(|row| text(row, "leg") == "backend") {
        *seen.entry(text(row, "endpoint").to_owned()).or_insert(0) += 1;
    }
    eprintln!("requests per backend: {seen:?}");
    assert_eq!(seen, logged);
}
