//! What the program still holds once it watches, and still can do.

use std::collections::BTreeMap;
use std::fs;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::kernel_available;
use crate::live::{Live, json, until};
use crate::namespace::Namespace;

/// Lines of `/proc/PID/task/*/status` that tell of privileges, by thread and key.
fn held(pid: u32) -> BTreeMap<String, BTreeMap<String, String>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let status = |task: fs::DirEntry| {
        // A thread may end while the list is read.
        let text = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let told = |key: &str| key.starts_with("Cap") || ["NoNewPrivs", "Name"].contains(&key);
        let lines = lines.filter(|(key, _)| told(key));
        lines.map(|(key, value)| (key.to_owned(), value.trim().to_owned())).collect()
    };
    tasks.flatten().map(|task| (task.file_name().into_string().unwrap(), status(task))).collect()
}

const NOTHING: &str = "0000000000000000";

fn assert_nothing_held(pid: u32, when: &str) {
    let threads = held(pid);
    assert!(threads.len() >= 2, "{when}: {threads:?}");
    for (thread, told) in threads.into_iter().filter(|(_, told)| !told.is_empty()) {
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(told[set], NOTHING, "{when}: {set} of thread {thread} ({})", told["Name"]);
        }
        assert_eq!(told["NoNewPrivs"], "1", "{when}: thread {thread}");
    }
}

fn gauge(agent: &Live, endpoint: &str) -> Value {
    let gauges = json(&agent.call("GET", "/v1/inflight", "", ""));
    let rows = gauges["endpoints"].as_array().unwrap();
    rows.iter().find(|row| row["endpoint"] == endpoint).unwrap().clone()
}

#[test]
fn without_any_capability_it_reconciles_other_namespaces_and_reloads() {
    if !kernel_available("privileges after the drop") {
        return;
    }
    let namespace = Namespace::new("dropped");
    let listener = namespace.listen("127.0.0.1:0".parse().unwrap());
    let endpoint = listener.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let argument = format!("backend={endpoint}");
    let agent = Live::start(folder.path(), &["--endpoint", &argument], "info");
    let pid = agent.running.0.id();
    assert_nothing_held(pid, "when ready");
    let (endpoint, client) = (endpoint.to_string(), namespace.connect(endpoint));
    let before = gauge(&agent, &endpoint)["reconciliations"].as_u64().unwrap();
    let told = until("two reconciliations of the other namespace", || {
        let told = gauge(&agent, &endpoint);
        (told["reconciliations"].as_u64().unwrap() >= before + 2).then_some(told)
    });
    assert_eq!((&told["connections"], &told["drift"]), (&1.into(), &0.into()), "{told}");
    assert_eq!((&told["certainty"], &told["corrections"]), (&"exact".into(), &0.into()), "{told}");
    agent.signal(Signal::SIGHUP);
    until("the reload", || {
        let metrics = agent.call("GET", "/metrics", "", "");
        metrics.contains("config_reloads_total{outcome=\"applied\"} 1").then_some(())
    });
    let status = json(&agent.call("GET", "/v1/status", "", ""));
    assert_eq!(status["complete"], true, "{status}");
    // Whatever thread was started since holds nothing either.
    assert_nothing_held(pid, "after calls, reconciliations and a reload");
    drop((client, listener));
}
