//! The same trace over fresh and over kept connections: the same outcomes, and an agent that counts
//! connections and the requests on them as the client does.

#![expect(clippy::panic, reason = "a failed step is a failed test")]

use std::collections::BTreeMap;

use e2e::agent::{Agent, Watch, Window};
use e2e::cross_check::cross_check;
use e2e::fleet::Fleet;
use e2e::jsonl::{number, text};
use e2e::replay::Replay;
use e2e::require_kernel;
use e2e::trace::Trace;
use serde_json::Value;

const ROWS: usize = 40;
const MODES: [&str; 2] = ["pinned", "pooled"];

fn fleet(upstream: &str) -> anyhow::Result<Fleet> {
    Fleet::start(&format!(
        "[engine]\nprefill_tokens_per_s = 1000000\ndecode_interval_us = 2000\n\
         [[backend]]\nname = 'b0'\n[[backend]]\nname = 'b1'\n\
         [[gateway]]\nname = 'vip'\npolicy = {{ algorithm = 'round_robin' }}\n\
         keep_alive = {{ upstream = '{upstream}', max_requests = 7 }}\n"
    ))
}

fn replay(fleet: &Fleet, agent: &Agent, mode: &str) -> anyhow::Result<(Vec<Value>, Window)> {
    let trace = Trace { rows: ROWS, groups: 2, blocks: 2, output_tokens: 5 }.text();
    let more = ["--model", "sim-model", "--connections", mode];
    let replay = Replay { to: fleet.vip("vip")?, trace: &trace, rate: 25.0, more: &more };
    let folder = tempfile::tempdir()?;
    let (mut requests, window) = agent.api().window(mode, || replay.run(folder.path()))?;
    requests.sort_by_key(|request| number(request, "index"));
    window.ensure_complete()?;
    let joined = cross_check(&requests, &[&window])?;
    let rows = u64::try_from(ROWS)?;
    assert_eq!((joined.completed, joined.on_client_leg, joined.on_backend_leg), (rows, rows, rows));
    assert!(joined.disagreements.is_empty(), "{:?}", joined.disagreements);
    Ok((requests, window))
}

/// What must not depend on connections.
fn outcome(request: &Value) -> [String; 6] {
    ["index", "class", "framing", "completion_tokens", "token_events", "prompt_tokens"]
        .map(|key| request[key].to_string())
}

/// Place of every request, by the client and by the agent: connection, and requests before it there.
fn places(requests: &[Value], window: &Window) -> Vec<[(i64, i64); 2]> {
    let pair = |row: &Value, conn, place| {
        number(row, conn).zip(number(row, place)).unwrap_or_else(|| panic!("no place in {row}"))
    };
    let of = |request: &Value| {
        let id = text(request, "trace_id");
        let seen = window.leg(id, "client").unwrap_or_else(|| panic!("{id} was not seen"));
        let own = pair(request, "conn_id", "conn_request_index");
        [own, pair(seen, "connection", "request_index")]
    };
    requests.iter().map(of).collect()
}

/// Connections are numbered by both sides; their numbers must map one to one, and places be equal.
fn assert_same_places(places: &[[(i64, i64); 2]]) {
    let (mut there, mut back) = (BTreeMap::new(), BTreeMap::new());
    for [own, seen] in places {
        assert_eq!(own.1, seen.1, "place on the connection: {own:?} {seen:?}");
        assert_eq!(*there.entry(own.0).or_insert(seen.0), seen.0, "two connections in one");
        assert_eq!(*back.entry(seen.0).or_insert(own.0), own.0, "one connection in two");
    }
}

#[test]
fn kept_connections_change_neither_outcomes_nor_what_the_kernel_sees() -> anyhow::Result<()> {
    require_kernel!();
    for upstream in MODES {
        let fleet = fleet(upstream)?;
        let watch = Watch {
            interfaces: vec!["lo"],
            api: "127.0.0.1:0",
            vips: vec![fleet.vip("vip")?],
            backends: fleet.backends()?.into_iter().map(|(_, address)| address).collect(),
        };
        let agent = Agent::start(&watch)?;
        let (fresh, first) = replay(&fleet, &agent, "fresh")?;
        let (kept, second) = replay(&fleet, &agent, "keep-alive")?;
        let outcomes = |requests: &[Value]| requests.iter().map(outcome).collect::<Vec<_>>();
        assert_eq!(outcomes(&fresh), outcomes(&kept), "{upstream}");

        let (alone, shared) = (places(&fresh, &first), places(&kept, &second));
        assert_same_places(&alone);
        assert_same_places(&shared);
        assert!(alone.iter().all(|[own, _]| own.1 == 0), "a fresh connection carried two requests");
        let most = shared.iter().map(|[own, _]| own.1).max();
        assert!(most >= Some(1) && most < Some(7), "reused, up to the gateway's bound: {most:?}");
        for request in &kept {
            let reused = number(request, "conn_request_index") > Some(0);
            assert_eq!(request["conn_reused"], reused, "{request}");
            assert_eq!(number(request, "retries"), Some(0), "{request}");
        }
    }
    Ok(())
}

#[test]
fn a_request_that_was_sent_again_is_joined_with_the_time_that_was_answered() -> anyhow::Result<()> {
    require_kernel!();
    let fleet = Fleet::start("[[backend]]\nname = 'b0'\nfault = 'close_reused'\n")?;
    let address = fleet.backend("b0")?;
    let watch = Watch {
        interfaces: vec!["lo"],
        api: "127.0.0.1:0",
        vips: vec![address],
        backends: Vec::new(),
    };
    let agent = Agent::start(&watch)?;
    let trace = Trace { rows: 12, groups: 2, blocks: 2, output_tokens: 3 }.text();
    let more = ["--model", "sim-model", "--connections", "keep-alive"];
    let replay = Replay { to: address, trace: &trace, rate: 10.0, more: &more };
    let folder = tempfile::tempdir()?;
    let (requests, window) = agent.api().window("again", || replay.run(folder.path()))?;
    let joined = cross_check(&requests, &[&window])?;
    assert_eq!((joined.completed, joined.on_client_leg), (12, 12));
    assert!(joined.disagreements.is_empty(), "{:?}", joined.disagreements);
    let again: i64 = requests.iter().filter_map(|request| number(request, "retries")).sum();
    assert!(again > 0, "nothing was reused");
    assert_eq!(window.observations.len() as i64, 12 + again, "every time has its row");
    Ok(())
}
