//! What a run refuses before it writes anything, and what it registers.

use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::baseline::confirmed;
use super::manifest::manifest;
use super::prepare::Prepared;
use super::{Existing, RunError, RunOptions, SilentReporter, prefix, run};
use crate::campaign::Campaign;
use crate::rundir::{Override, SloFile, write_json};
use crate::testkit;

const ROWS: &str = r#"{"timestamp": 0, "input_length": 1000, "output_length": 5, "hash_ids": [1, 2]}
{"timestamp": 10, "input_length": 900, "output_length": 7, "hash_ids": [1, 3]}
{"timestamp": 20, "input_length": 400, "output_length": 3, "hash_ids": [1]}
{"timestamp": 30, "input_length": 1000, "output_length": 3, "hash_ids": [1, 2]}
"#;

/// A campaign whose VIPs are `vip`, with its trace, in `dir`.
fn campaign(dir: &Path, vip: &str) -> std::path::PathBuf {
    std::fs::write(dir.join("trace.jsonl"), ROWS).unwrap();
    let text = testkit::CAMPAIGN
        .replace("127.0.0.1:1\"", &format!("{vip}\""))
        .replace("target/run", dir.join("run").to_str().unwrap());
    let path = dir.join("campaign.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// An address where nothing listens: bound, then given back.
fn closed_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn attempt(path: &Path, options: RunOptions) -> RunError {
    run(path, options, &AtomicBool::new(false), &mut SilentReporter).unwrap_err()
}

fn message(error: &dyn std::error::Error) -> String {
    error.to_string()
}

#[test]
fn an_unreachable_vip_is_named_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let vip = closed_port();
    let error = attempt(&campaign(dir.path(), &vip), RunOptions::default());
    let text = message(&error);
    assert!(text.contains(&format!("unreachable VIP http://{vip} of arm floor")), "{text}");
    assert!(!dir.path().join("run").exists());
}

#[test]
fn a_bad_trace_is_named_with_its_line_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = campaign(dir.path(), &closed_port());
    std::fs::write(
        dir.path().join("trace.jsonl"),
        ROWS.replace("\"timestamp\": 20", "\"timestamp\": -1"),
    )
    .unwrap();
    let text = message(&attempt(&path, RunOptions::default()));
    assert!(text.contains("trace.jsonl") && text.contains('3'), "{text}");
    std::fs::remove_file(dir.path().join("trace.jsonl")).unwrap();
    assert!(message(&attempt(&path, RunOptions::default())).contains("trace.jsonl"));
    assert!(!dir.path().join("run").exists());
}

/// What a run has put down at `root` before its first measured request.
fn registered(path: &Path, root: &Path) {
    let prepared = Prepared::new(Campaign::load(path).unwrap(), RunOptions::default()).unwrap();
    let health = testkit::health();
    let manifest = manifest(&prepared, &health).unwrap();
    std::fs::create_dir(root).unwrap();
    write_json(&root.join("manifest.json"), &manifest).unwrap();
}

#[test]
fn a_directory_that_is_no_run_is_never_touched() {
    let dir = tempfile::tempdir().unwrap();
    let path = campaign(dir.path(), &closed_port());
    let root = dir.path().join("run");
    let replace = RunOptions { existing: Existing::Replace, ..RunOptions::default() };
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("precious"), "").unwrap();
    assert!(matches!(attempt(&path, replace.clone()), RunError::Foreign { .. }));
    std::fs::remove_file(root.join("precious")).unwrap();
    // Extensions of browsers and packages of other languages have a file of this name, too.
    std::fs::write(root.join("manifest.json"), r#"{"name": "my-extension"}"#).unwrap();
    assert!(matches!(attempt(&path, replace), RunError::Foreign { stranger: None, .. }));
}

#[test]
fn a_run_is_replaced_only_when_told_and_only_without_strangers() {
    let dir = tempfile::tempdir().unwrap();
    let path = campaign(dir.path(), &closed_port());
    let root = dir.path().join("run");
    registered(&path, &root);
    let refused = attempt(&path, RunOptions::default());
    assert!(message(&refused).contains("--resume"), "{refused}");
    let replace = RunOptions { existing: Existing::Replace, ..RunOptions::default() };
    // Accepted: what stops it now is the VIP.
    assert!(message(&attempt(&path, replace.clone())).contains("unreachable VIP"));
    std::fs::create_dir(root.join("notes")).unwrap();
    let refused = message(&attempt(&path, replace));
    assert!(refused.contains("notes, which no run writes"), "{refused}");
    assert!(root.join("notes").exists() && root.join("manifest.json").exists());
}

#[test]
fn a_run_needs_a_directory_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = campaign(dir.path(), &closed_port());
    for nameless in ["", "/", ".."] {
        let options = RunOptions { run_dir: Some(nameless.into()), ..RunOptions::default() };
        let error = attempt(&path, options);
        assert!(matches!(error, RunError::Unnamed { .. }), "{nameless}: {error}");
    }
}

fn prepared(dir: &Path, options: RunOptions) -> Prepared {
    let path = campaign(dir, &closed_port());
    Prepared::new(Campaign::load(&path).unwrap(), options).unwrap()
}

#[test]
fn what_a_run_is_begun_with_below_the_campaign_stays_on_record() {
    let dir = tempfile::tempdir().unwrap();
    let overrides = |options| {
        let prepared = prepared(dir.path(), options);
        manifest(&prepared, &testkit::health()).unwrap()
    };
    let quick = RunOptions {
        repetitions: Some(1),
        probe_seconds: Some(2.0),
        without_agent: true,
        ..RunOptions::default()
    };
    let begun = overrides(quick);
    assert_eq!(
        begun.overrides,
        [
            Override::Repetitions { asked: 1, registered: 5 },
            Override::ProbeSeconds { asked: 2.0, registered: 10.0 },
            Override::WithoutAgent { agents: 1 },
        ]
    );
    let more = RunOptions { repetitions: Some(9), ..RunOptions::default() };
    assert_eq!(overrides(more).overrides, []);
    write_json(&dir.path().join("run/manifest.json"), &begun).unwrap();
    let resumed = RunOptions { existing: Existing::Resume, ..RunOptions::default() };
    assert_eq!(overrides(resumed).overrides, begun.overrides, "continuing forgot its beginning");
}

#[test]
fn a_run_is_not_continued_under_another_slo() {
    let dir = tempfile::tempdir().unwrap();
    let prepared = prepared(dir.path(), RunOptions::default());
    let largest = prepared.trace.largest_output();
    let slo = crate::slo::derive(&prepared.campaign, largest, None, None).unwrap();
    assert_eq!(confirmed(&prepared, slo.clone()).unwrap(), slo);
    let edited = SloFile { ttft_ns: slo.ttft_ns * 10, ..slo };
    let refused = confirmed(&prepared, edited).unwrap_err();
    assert!(matches!(refused, RunError::ResumeDiffers { .. }), "{refused}");
    assert!(message(&refused).contains("slo.json"), "{refused}");
}

#[test]
fn every_arm_of_a_repetition_replays_the_same_schedule_with_ids_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = campaign(dir.path(), &closed_port());
    let prepared = Prepared::new(Campaign::load(&path).unwrap(), RunOptions::default()).unwrap();
    let of = |arm, repetition| prepared.schedule(arm, 10.0, repetition, None).unwrap();
    let hash = |schedule: &crate::schedule::Schedule| {
        let records = schedule.requests().iter().map(crate::records::ScheduleRecord::from);
        crate::records::schedule_sha256(records).unwrap()
    };
    let (floor, aware) = (of("floor", 1), of("aware", 1));
    assert_eq!(hash(&floor), hash(&aware));
    assert_ne!(hash(&floor), hash(&of("floor", 2)));
    let ids =
        |s: &crate::schedule::Schedule| s.requests().iter().map(|p| p.trace_id).collect::<Vec<_>>();
    assert!(ids(&floor).iter().all(|id| !ids(&aware).contains(id)));
}

#[test]
fn repeated_prefixes_are_counted_at_the_registered_depth() {
    let dir = tempfile::tempdir().unwrap();
    let path = campaign(dir.path(), &closed_port());
    let prepared = Prepared::new(Campaign::load(&path).unwrap(), RunOptions::default()).unwrap();
    let schedule = prepared.schedule("floor", 10.0, 1, None).unwrap();
    // Every row begins with block 1: three repeats. Only [1, 2] comes twice, and [1] has no second block.
    assert_eq!(prefix::repeated(&prepared.trace, &schedule, 1, 4), Some(3));
    assert_eq!(prefix::repeated(&prepared.trace, &schedule, 2, 4), Some(1));
    assert_eq!(prefix::repeated(&prepared.trace, &schedule, 3, 4), Some(0));
}

#[test]
fn a_prompt_repeats_the_prefix_that_its_bytes_repeat() {
    let dir = tempfile::tempdir().unwrap();
    let path = campaign(dir.path(), &closed_port());
    // A block is 512 tokens of 4 bytes: 2048 bytes.
    let (head, other) = ("a".repeat(2048), format!("{}b", "a".repeat(2047)));
    let rows: String = [head.clone(), format!("{head} more"), other, "a".repeat(2047)]
        .iter()
        .zip([0, 10, 20, 30])
        .map(|(prompt, ms)| {
            let row = serde_json::json!({"timestamp_ms": ms, "prompt": prompt, "max_tokens": 4});
            format!("{row}\n")
        })
        .collect();
    std::fs::write(dir.path().join("trace.jsonl"), rows).unwrap();
    let prepared = Prepared::new(Campaign::load(&path).unwrap(), RunOptions::default()).unwrap();
    let schedule = prepared.schedule("floor", 10.0, 1, None).unwrap();
    assert_eq!(prefix::repeated(&prepared.trace, &schedule, 1, 4), Some(1));
    // With half the bytes a token the third and the fourth repeat it, too.
    assert_eq!(prefix::repeated(&prepared.trace, &schedule, 1, 2), Some(3));
}
