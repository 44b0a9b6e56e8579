//! The product's own join of client and kernel, over what a test collected.

use std::collections::BTreeMap;

use analyzer::join::{CrossCheck, Judge, Observed, join};
use analyzer::records::AgentRecord;
use serde_json::Value;

use crate::agent::Window;
use crate::jsonl;

/// No bound: these tests look at durations, not at verdicts.
const ANY: Judge = Judge { ttft_ns: u64::MAX, tpot_ns: u64::MAX };

/// Joins the requests of a replay with the windows of one or several agents.
///
/// # Errors
/// When a row is not what docs/formats.md says.
pub fn cross_check(requests: &[Value], windows: &[&Window]) -> anyhow::Result<CrossCheck> {
    let requests: Vec<_> =
        requests.iter().cloned().map(serde_json::from_value).collect::<Result<_, _>>()?;
    let observed: Vec<_> =
        windows.iter().map(|window| observed(window)).collect::<anyhow::Result<_>>()?;
    Ok(join(&requests, &observed, ANY))
}

fn observed(window: &Window) -> anyhow::Result<Observed> {
    let rows = window.observations.iter().cloned().map(serde_json::from_value);
    let counters = window.account["counters"].as_object().cloned().unwrap_or_default();
    let account = AgentRecord {
        name: "e2e".to_owned(),
        url: String::new(),
        complete: window.account["complete"] == true,
        reasons: Vec::new(),
        window_id: Some(jsonl::text(&window.account, "window_id").to_owned()),
        observations: window.account["observations"].as_u64(),
        counters: counters.into_iter().collect::<BTreeMap<_, _>>(),
    };
    Ok(Observed { account, rows: rows.collect::<Result<_, _>>()? })
}
