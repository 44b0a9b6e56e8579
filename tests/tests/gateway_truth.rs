//! What a disaggregating gateway says of its requests, against what the kernel saw of them; and endpoints that
//! follow the gateway's rules.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use e2e::agent::Agent;
use e2e::fleet::Fleet;
use e2e::replay::Replay;
use e2e::trace::Trace;
use e2e::{http, jsonl, require_kernel};
use serde_json::{Value, json};

const ROWS: usize = 24;

const FLEET: &str = "
[engine]
prefill_tokens_per_s = 100000
decode_interval_us = 2000
[[backend]]
name = 'p0'
[[backend]]
name = 'p1'
[[backend]]
name = 'd0'
[[backend]]
name = 'd1'
[[gateway]]
name = 'honest'
prefill = ['p0', 'p1']
policy = { algorithm = 'round_robin' }
[[gateway]]
name = 'liar'
prefill = ['p0', 'p1']
fault = 'wrong_receipt'
policy = { algorithm = 'round_robin' }
";

/// An agent that knows no endpoint but those that the gateway names.
fn discovering(rest: SocketAddr) -> anyhow::Result<Agent> {
    Agent::start_file(&format!(
        "name = 'e2e'\ninterfaces = ['lo']\napi = '127.0.0.1:0'\n\
         [discovery]\nloxilb_url = 'http://{rest}'\ninterval_ms = 100\n"
    ))
}

/// One window's rows, legs and delivery.
struct Told {
    rows: Vec<Value>,
    legs: Vec<Value>,
    delivery: Value,
    account: Value,
}

fn replayed(agent: &Agent, vip: SocketAddr, folder: &Path) -> anyhow::Result<Told> {
    let trace = Trace { rows: ROWS, groups: 3, blocks: 2, output_tokens: 4 }.text();
    let id = agent.api().open("truth")?;
    let more = ["--model", "sim-model"];
    Replay { to: vip, trace: &trace, rate: 20.0, more: &more }.run(folder)?;
    let url = format!("{}/v1/windows/{id}", agent.api().url());
    let account = http::post(&format!("{url}/close"), &json!({ "drain_ms": 2000 }))?.json()?;
    Ok(Told {
        rows: jsonl::parse(&http::get(&format!("{url}/observations"))?.body)?,
        legs: jsonl::parse(&http::get(&format!("{url}/legs"))?.body)?,
        delivery: http::get(&format!("{url}/delivery"))?.json()?,
        account,
    })
}

fn told(gateway: &str) -> anyhow::Result<(Fleet, Agent, Told)> {
    let fleet = Fleet::start(FLEET)?;
    let agent = discovering(fleet.rest(gateway)?)?;
    let folder = tempfile::tempdir()?;
    let told = replayed(&agent, fleet.vip(gateway)?, folder.path())?;
    anyhow::ensure!(told.account["complete"] == true, "{}", told.account);
    Ok((fleet, agent, told))
}

/// Both counters of `/metrics` once the last pairs have settled, which takes a second.
fn receipts_metric(agent: &Agent, verdict: &str, wanted: usize) -> anyhow::Result<()> {
    let line = format!("goodput_agent_receipts_total{{verdict=\"{verdict}\"}} {wanted}\n");
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let text = http::get(&format!("{}/metrics", agent.api().url()))?.body;
        if text.contains(&line) {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < end, "no {line}in {text}");
    }
}

#[test]
fn an_honest_gateways_receipts_agree_with_the_kernel() -> anyhow::Result<()> {
    require_kernel!();
    let (fleet, agent, told) = told("honest")?;
    let receipts = json!({"agree": ROWS, "disagree": 0, "absent": 0, "not_observable": 0});
    assert_eq!(told.delivery["receipts"], receipts, "{}", told.delivery);
    assert_eq!(told.delivery["disaggregated"], ROWS);
    assert_eq!(told.delivery["unmatched"], json!({}));
    assert_eq!(told.legs.len(), ROWS);
    let pool = |a: &str, b: &str| -> anyhow::Result<BTreeSet<String>> {
        Ok([fleet.backend(a)?.to_string(), fleet.backend(b)?.to_string()].into())
    };
    let (prefills, decodes) = (pool("p0", "p1")?, pool("d0", "d1")?);
    for leg in &told.legs {
        assert!(prefills.contains(jsonl::text(leg, "prefill")), "{leg}");
        assert!(decodes.contains(jsonl::text(leg, "decode")), "{leg}");
        let split = &leg["split"];
        let part = |name: &str| jsonl::number(split, name).unwrap_or(i64::MIN);
        let parts = ["gateway_ns", "backend_ns", "network_between_ns", "retries_ns"].map(part);
        assert_eq!(Some(parts.iter().sum()), jsonl::number(leg, "ttft_ns"), "{leg}");
    }
    let from = |row: &Value| row["receipt_from"] == "response_id";
    assert_eq!(told.rows.len(), 3 * ROWS);
    assert!(told.rows.iter().all(from), "{:?}", told.rows.first());
    receipts_metric(&agent, "agree", ROWS)
}

#[test]
fn a_lie_about_the_prefill_is_caught() -> anyhow::Result<()> {
    require_kernel!();
    let (_fleet, agent, told) = told("liar")?;
    let receipts = json!({"agree": 0, "disagree": ROWS, "absent": 0, "not_observable": 0});
    assert_eq!(told.delivery["receipts"], receipts, "{}", told.delivery);
    let first = &told.delivery["disagreements"][0];
    assert_eq!(first["reasons"], json!(["prefill_elsewhere"]));
    assert_ne!(first["receipt"]["prefill"], first["prefill"]);
    receipts_metric(&agent, "disagree", ROWS)
}

#[test]
fn endpoints_follow_a_rule_that_changes_while_the_agent_runs() -> anyhow::Result<()> {
    require_kernel!();
    let fleet = Fleet::start(
        "[[backend]]\nname = 'b0'\n[[backend]]\nname = 'b1'\n\
         [[gateway]]\nname = 'g'\nendpoints = ['b0']\npolicy = { algorithm = 'round_robin' }\n",
    )?;
    let (vip, rest, b1) = (fleet.vip("g")?, fleet.rest("g")?, fleet.backend("b1")?);
    let agent = discovering(rest)?;
    let status = || http::get(&format!("{}/v1/status", agent.api().url()))?.json();
    let first = status()?;
    assert_eq!(first["endpoints"].as_array().context("endpoints")?.len(), 2, "{first}");
    let open = agent.api().open("across the change")?;
    let rule = json!({
        "serviceArguments": { "externalIP": vip.ip().to_string(), "port": vip.port(), "protocol": "tcp" },
        "endpoints": [{ "endpointIP": b1.ip().to_string(), "targetPort": b1.port() }],
    });
    let answer = http::post(&format!("http://{rest}/netlox/v1/config/loadbalancer"), &rule)?;
    assert_eq!(answer.json()?["result"], "Success");
    let watched = json!({ "address": b1.to_string(), "role": "backend" });
    let end = Instant::now() + Duration::from_secs(30);
    let changed = loop {
        let status = status()?;
        if status["endpoints"].as_array().context("endpoints")?.contains(&watched) {
            break status;
        }
        anyhow::ensure!(Instant::now() < end, "{status}");
    };
    assert_eq!(changed["discovery"]["applied"], 2, "{changed}");
    let folder = tempfile::tempdir()?;
    let told = replayed(&agent, vip, folder.path())?;
    assert_eq!(told.account["complete"], true, "{}", told.account);
    assert_eq!(told.delivery["backends"][b1.to_string()]["decode"], ROWS, "{}", told.delivery);
    // The window that was open has not seen all endpoints all the time.
    let across = agent.api().close(&open)?.account;
    assert_eq!(across["reasons"], json!(["endpoints_changed"]), "{across}");
    Ok(())
}
