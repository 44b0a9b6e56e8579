//! Evidence over a `/proc` that tests write, and over the real one.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::Nanos;
use serde_json::{Value, json};

use super::process::Proc;
use super::*;
use crate::clock::Clock;

#[derive(Debug, Default)]
struct Steps(AtomicU64);

impl Clock for Steps {
    fn now(&self) -> Nanos {
        Nanos::new(self.0.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

fn process(root: &Path, pid: u32, name: &str, ticks: u64, environ: Option<&str>) {
    let folder = root.join(pid.to_string());
    fs::create_dir_all(folder.join("net")).unwrap();
    fs::write(folder.join("comm"), format!("{name}\n")).unwrap();
    let before = "0 ".repeat(18);
    fs::write(folder.join("stat"), format!("{pid} ({name}) S {before}{ticks} 0 0\n")).unwrap();
    fs::write(folder.join("net/tcp"), "head\n 0: 0100007F:1F90 0:0 0A 0 0 0 0 0 77 1\n").unwrap();
    let path = folder.join("environ");
    match environ {
        Some(text) => fs::write(path, text).unwrap(),
        None => {
            let _ = fs::remove_file(path);
        }
    }
}

fn collector(root: &Path, name: &str) -> Collector {
    fs::write(root.join("stat"), "cpu 1\nbtime 1700000000\n").unwrap();
    let subject = Subject { process: name.to_owned(), interfaces: Vec::new() };
    Collector::over(Proc::at(root), subject, Arc::new(Steps::default()))
}

fn read(collector: &Collector) -> Value {
    serde_json::to_value(collector.read()).unwrap()
}

#[test]
fn a_process_is_known_by_its_name_start_and_mode() {
    let root = tempfile::tempdir().unwrap();
    let environ = "SECRET=canary\0LOXILB_KV_LB_MODE=hard\0";
    process(root.path(), 7, "loxilb", 250, Some(environ));
    process(root.path(), 8, "loxilb-other", 250, Some("LOXILB_KV_LB_MODE=canary\0"));
    let told = read(&collector(root.path(), "loxilb"));
    assert_eq!(told["schema"], "goodput.evidence/1");
    assert_eq!(told["processes"]["state"], "known");
    let one = &told["processes"]["value"][0];
    assert_eq!(told["processes"]["value"].as_array().unwrap().len(), 1);
    assert_eq!(one["pid"], 7);
    assert_eq!(one["started_boottime_ns"], 2_500_000_000_u64);
    assert_eq!(one["started_unix_ms"], 1_700_000_002_500_u64);
    assert_eq!(one["environment"]["value"]["LOXILB_KV_LB_MODE"], "hard");
    assert_eq!(one["environment"]["value"]["LOXILB_KV_SPILL_RELIEF"], Value::Null);
    let listener = json!([{"address": "127.0.0.1:8080", "owner": "unknown"}]);
    assert_eq!(one["listening"]["value"], listener);
    assert!(!told.to_string().contains("canary"), "{told}");
}

#[test]
fn names_are_compared_as_the_kernel_cuts_them() {
    let root = tempfile::tempdir().unwrap();
    process(root.path(), 7, "a-gateway-of-15", 1, Some(""));
    let told = read(&collector(root.path(), "a-gateway-of-15-characters-and-more"));
    assert_eq!(told["processes"]["value"][0]["pid"], 7);
}

#[test]
fn what_only_the_start_could_read_stays_with_its_instant_while_the_process_lives() {
    let root = tempfile::tempdir().unwrap();
    process(root.path(), 7, "loxilb", 250, Some("LOXILB_KV_LB_MODE=hard\0"));
    let collector = collector(root.path(), "loxilb");
    process(root.path(), 7, "loxilb", 250, None);
    let told = read(&collector);
    let environment = &told["processes"]["value"][0]["environment"];
    assert_eq!((&environment["state"], &environment["at_ns"]), (&json!("known"), &json!(1)));
    assert_eq!((&told["at_ns"], &told["processes"]["at_ns"]), (&json!(2), &json!(2)));
    // Another process has the same id.
    process(root.path(), 7, "loxilb", 900, None);
    let environment = &read(&collector)["processes"]["value"][0]["environment"];
    assert_eq!(environment["state"], "unknown");
    assert!(environment["why"].as_str().unwrap().contains("environ"), "{environment}");
    assert!(!environment["mend"].as_str().unwrap().is_empty());
}

#[test]
fn no_process_is_an_empty_list_and_no_sockmap_is_claimed() {
    let root = tempfile::tempdir().unwrap();
    let told = read(&collector(root.path(), "loxilb"));
    assert_eq!(told["processes"]["value"], json!([]));
    let missing = tempfile::tempdir().unwrap().path().join("gone");
    let subject = Subject { process: "loxilb".to_owned(), interfaces: Vec::new() };
    let lost = Collector::over(Proc::at(&missing), subject, Arc::new(Steps::default()));
    assert_eq!(read(&lost)["processes"]["state"], "unknown");
}

#[test]
fn an_interface_that_is_gone_is_unknown_with_its_mend() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("stat"), "btime 1\n").unwrap();
    let interfaces = vec![("gone0".to_owned(), u32::MAX / 2)];
    let subject = Subject { process: "loxilb".to_owned(), interfaces };
    let collector = Collector::over(Proc::at(root.path()), subject, Arc::new(Steps::default()));
    let foreign = &read(&collector)["foreign_programs"];
    assert_eq!(foreign["state"], "unknown");
    assert!(!foreign["mend"].as_str().unwrap().is_empty(), "{foreign}");
}
