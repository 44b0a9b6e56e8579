//! Completeness at scale: 200 streams at once, 20,000 events a second together, replayed against the
//! simulator with an agent on the same host.
//!
//! `GOODPUT_COMPLETENESS_S` sets the length in seconds. The rate that was reached is printed, not judged: a
//! busy host may miss it, but nothing may be lost.

#![expect(clippy::panic, reason = "a failed step is a failed test")]

use anyhow::Context as _;
use e2e::agent::{Agent, Watch, Window};
use e2e::fleet::Fleet;
use e2e::jsonl::{number, text};
use e2e::replay::Replay;
use e2e::require_kernel;
use e2e::trace::Trace;
use serde_json::Value;

const STREAMS: usize = 200;
/// Of each stream; 20,000 of all.
const EVENTS_PER_S: usize = 100;
const DEFAULT_S: usize = 6;

/// One backend that serves all streams at once, a token every 10 ms each.
const FLEET: &str = "
[engine]
prefill_tokens_per_s = 1000000000
decode_interval_us = 10000
slots = 200
[[backend]]
name = 'b0'
[[gateway]]
name = 'vip'
policy = { algorithm = 'round_robin' }
";

fn seconds() -> anyhow::Result<usize> {
    match std::env::var("GOODPUT_COMPLETENESS_S") {
        Ok(text) => text.parse().context("GOODPUT_COMPLETENESS_S is a number of seconds"),
        Err(_) => Ok(DEFAULT_S),
    }
}

#[test]
fn two_hundred_streams_lose_nothing() -> anyhow::Result<()> {
    require_kernel!();
    let tokens = seconds()? * EVENTS_PER_S;
    let fleet = Fleet::start(FLEET)?;
    let address = fleet.backend("b0")?;
    let watch = Watch {
        interfaces: vec!["lo"],
        api: "127.0.0.1:0",
        vips: vec![address],
        backends: Vec::new(),
    };
    let agent = Agent::start(&watch)?;
    let trace = Trace { rows: STREAMS, groups: 1, blocks: 1, output_tokens: tokens }.text();
    let deadline = (tokens * 100).to_string();
    let more = ["--model", "sim-model", "--deadline-ms", &deadline, "--stall-ms", "60000"];
    let replay = Replay { to: address, trace: &trace, rate: 1000.0, more: &more };
    let folder = tempfile::tempdir()?;
    let (requests, window) = agent.api().window("scale", || replay.run(folder.path()))?;
    window.ensure_complete()?;
    let unparsed = number(&window.account["counters"], "unparsed_packets");
    assert_eq!(unparsed, Some(0), "{}", window.account);
    assert_equal(&requests, &window, i64::try_from(tokens)?);
    report(&requests);
    Ok(())
}

/// Every observation equals the client's own count.
fn assert_equal(requests: &[Value], window: &Window, tokens: i64) {
    assert_eq!((requests.len(), window.observations.len()), (STREAMS, STREAMS));
    for request in requests {
        let id = text(request, "trace_id");
        let seen = window.leg(id, "client").unwrap_or_else(|| panic!("{id} was not seen"));
        assert_eq!(number(request, "token_events"), Some(tokens), "{request}");
        assert_eq!((text(request, "class"), text(seen, "outcome")), ("ok", "ok"), "{request}");
        assert_eq!((text(request, "framing"), text(seen, "framing")), ("valid", "valid"));
        for key in ["token_events", "completion_tokens", "response_bytes", "request_bytes"] {
            assert_eq!(number(request, key), number(seen, key), "{key} of {id}");
        }
        let stamps = seen["token_ns"].as_array().map(Vec::len);
        assert_eq!(stamps.map(|count| count as i64), Some(tokens), "stamps of {id}");
    }
}

fn report(requests: &[Value]) {
    let instants = |key| requests.iter().filter_map(move |request| number(request, key));
    let (first, last) = (instants("first_token_ns").min(), instants("last_token_ns").max());
    let events: i64 = instants("token_events").sum();
    let spread = last.zip(first).map_or(0, |(last, first)| last - first);
    let together = instants("first_token_ns").max() < instants("last_token_ns").min();
    let rate = events as f64 / (spread as f64 / 1e9);
    eprintln!("{events} events, {rate:.0} a second, all streams at once: {together}; none lost");
}
