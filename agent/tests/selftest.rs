//! `goodput-agent selftest` on this host.

#![expect(
    clippy::unwrap_used,
    reason = "helpers outside test functions fail their test by panicking"
)]

use std::process::Command;

use agent::capture::tcx::preflight;
use serde_json::Value;

const AGENT: &str = env!("CARGO_BIN_EXE_goodput-agent");

#[test]
fn the_selftest_proves_every_observation() {
    proves("auto");
}

#[test]
fn the_selftest_proves_the_fallback() {
    proves("socket-filter");
}

fn proves(source: &str) {
    let missing = preflight();
    let arguments = ["selftest", "--json", "--source", source];
    let out = Command::new(AGENT).args(arguments).output().unwrap();
    if !missing.is_empty() {
        eprintln!("SKIPPED the self-test itself: {missing:?}");
        let required = std::env::var("GOODPUT_REQUIRE_KERNEL").is_ok_and(|value| value == "1");
        assert!(!required, "GOODPUT_REQUIRE_KERNEL=1 and the kernel programs can't be attached");
        assert_eq!(out.status.code(), Some(2), "{out:?}");
        return;
    }
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let wrong: Vec<_> = checks.iter().filter(|check| check["ok"] != true).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!((out.status.code(), &report["passed"]), (Some(0), &Value::Bool(true)));
    assert!(checks.len() > 20, "{} checks", checks.len());
}
