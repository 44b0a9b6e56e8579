//! A small run directory, and what each change of it is called.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use crosscheck::{Report, RunDir, check};
use serde_json::{Value, json};
use tempfile::TempDir;

const CAMPAIGN: &str = r#"
name = "two arms"
[slo]
target = 0.5
[load]
rates_rps = [10.0]
[[arm]]
name = "floor"
floor = true
accelerators = 2
[[arm]]
name = "aware"
accelerators = 2
"#;

/// The rule that finds a change, and the change.
type Case<T> = (&'static str, fn(&mut T));

/// Requests of a repetition, of which the first `good` meet the SLO of 100 ns and 10 ns.
const SIZE: u64 = 10;
const START: u64 = 1_000_000;

fn request(index: u64, good: bool) -> Value {
    let planned = START + index * 100_000_000;
    let first = planned + if good { 100 } else { 101 };
    json!({
        "index": index, "planned_ns": planned, "dispatched_ns": planned, "sent_ns": planned + 1,
        "first_byte_ns": first, "first_event_ns": first, "first_token_ns": first, "last_token_ns": first + 39,
        "framing_end_ns": first + 40, "end_ns": first + 50, "framing": "valid", "finish_reason": "stop",
        "done_ns": first + 39, "status": 200, "completion_tokens": 4, "class": "ok",
        "ttft_ns": first - planned, "tpot_ns": 13, "error_event": false, "unreadable_payload": false,
    })
}

fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn repetition(root: &Path, arm: &str, number: usize, good: u64) {
    let dir = root.join(format!("{arm}-r10")).join(format!("rep{number}"));
    let rows: Vec<Value> = (0..SIZE).map(|index| request(index, index < good)).collect();
    let plan: Vec<Value> = (0..SIZE)
        .map(|index| json!({"index": index, "planned_offset_ns": index * 100_000_000}))
        .collect();
    put(&dir.join("requests.jsonl"), &lines(&rows));
    put(&dir.join("schedule.jsonl"), &lines(&plan));
    put(&dir.join("run.json"), &json!({"window_start_ns": START}).to_string());
}

/// What a right analysis says; every number is worked out by hand.
fn arm(name: &str, good: [u64; 2], interval: [f64; 2]) -> Value {
    let all = good[0] + good[1];
    let repetition = |number: usize| {
        json!({
            "repetition": number + 1, "valid": true, "classes": {"ok": SIZE},
            "counts": {"good": good[number], "attempted": SIZE},
        })
    };
    let share = all as f64 / 20.0;
    json!({
        "name": name,
        "cells": [{
            "rate_rps": 10.0, "repetitions": [repetition(0), repetition(1)],
            "counts": {"good": all, "attempted": 20}, "good_fraction": share,
            "goodput_per_accelerator": share * 5.0,
            "interval_t": {"low": interval[0], "high": interval[1]},
        }],
        "knee": {
            "tested": {"outcome": "at_least", "rung": {"rate_rps": 10.0}},
            "provisional": {"outcome": "at_least", "rung": {"rate_rps": 10.0}},
        },
    })
}

/// t(0.975, 1 df); both arms vary by 0.1 between their two repetitions, so their standard error is 0.05.
const T1: f64 = 12.706_204_736_174_694;
/// t(0.975, 2 df), which is what Welch gives for equal variances; the standard error is 0.05 x sqrt(2).
const T2: f64 = 4.302_652_729_749_462;

fn run_dir() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    put(&root.join("campaign.toml"), CAMPAIGN);
    // A TPOT of 39 / 3 = 13 is on the bound.
    put(&root.join("slo.json"), &json!({"ttft_ns": 100, "tpot_ns": 13}).to_string());
    for (name, good) in [("floor", [5, 6]), ("aware", [8, 9])] {
        repetition(root, name, 1, good[0]);
        repetition(root, name, 2, good[1]);
    }
    let (half, welch) = (T1 * 0.05, T2 * 0.05 * 2.0_f64.sqrt());
    let analysis = json!({
        "repetitions_needed": 2,
        "arms": [
            arm("floor", [5, 6], [0.55 - half, 0.55 + half]),
            arm("aware", [8, 9], [0.85 - half, 0.85 + half]),
        ],
        "comparisons": [{
            "arm": "aware", "floor": "floor", "rate_rps": 10.0,
            "difference": {"estimate": 0.3, "interval": {"low": 0.3 - welch, "high": 0.3 + welch}},
        }],
    });
    put(&root.join("analysis.json"), &analysis.to_string());
    let wins = json!([]);
    put(&root.join("verdict.json"), &json!({ "wins": wins }).to_string());
    dir
}

fn report(dir: &TempDir) -> Report {
    check(&RunDir::new(dir.path())).unwrap()
}

fn rules(dir: &TempDir) -> Vec<&'static str> {
    report(dir).disagreements.iter().map(|it| it.rule).collect()
}

/// Rewrites the requests of aware's first repetition.
fn edit(dir: &TempDir, change: impl FnOnce(&mut Vec<Value>)) {
    let path = dir.path().join("aware-r10/rep1/requests.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let mut rows: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    change(&mut rows);
    fs::write(&path, lines(&rows)).unwrap();
}

fn edit_json(dir: &TempDir, name: &str, change: impl FnOnce(&mut Value)) {
    let path = dir.path().join(name);
    let mut value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut value);
    fs::write(&path, value.to_string()).unwrap();
}

#[test]
fn a_right_analysis_agrees() {
    let report = report(&run_dir());
    assert_eq!(report.disagreements, []);
    assert!(report.agrees() && report.compared > 200, "{}", report.compared);
    assert_eq!(report.clustering.len(), 2);
    assert!(!Report::default().agrees(), "nothing compared is no agreement");
}

#[test]
fn every_edited_record_is_found() {
    let cases: [Case<Vec<Value>>; 9] = [
        ("a record for each row", |rows| drop(rows.remove(3))),
        ("each request once", |rows| rows.push(rows[3].clone())),
        ("ttft_ns", |rows| rows[3]["ttft_ns"] = json!(99)),
        ("tpot_ns", |rows| rows[3]["tpot_ns"] = json!(12)),
        ("delivered", |rows| rows[3]["status"] = json!(503)),
        ("delivered", |rows| rows[3]["error_event"] = json!(true)),
        ("delivered", |rows| rows[3]["class"] = json!("truncated")),
        ("planned instant", |rows| rows[3]["planned_ns"] = json!(START)),
        ("instants", |rows| rows[3]["end_ns"] = json!(1)),
    ];
    for (rule, change) in cases {
        let dir = run_dir();
        edit(&dir, change);
        assert!(rules(&dir).contains(&rule), "{rule}: {:?}", rules(&dir));
    }
}

#[test]
fn a_latency_in_another_unit_is_called_that() {
    let dir = run_dir();
    edit(&dir, |rows| {
        rows[9]["first_token_ns"] = json!(START + 900_000_000 + 5_000_123);
        rows[9]["last_token_ns"] = json!(START + 900_000_000 + 5_000_162);
        rows[9]["end_ns"] = json!(START + 900_000_000 + 6_000_000);
        rows[9]["ttft_ns"] = json!(5_000);
    });
    let found = report(&dir).disagreements;
    let it = found.iter().find(|it| it.rule == "ttft_ns").unwrap();
    assert_eq!((it.said.as_str(), it.found.as_str()), ("5000 (microseconds?)", "5000123"));
}

#[test]
fn every_wrong_figure_of_the_analysis_is_found() {
    let cases: [Case<Value>; 9] = [
        ("good", |it| it["arms"][1]["cells"][0]["repetitions"][0]["counts"]["good"] = json!(9)),
        ("classes add up to attempted", |it| {
            it["arms"][1]["cells"][0]["repetitions"][0]["classes"]["ok"] = json!(9);
        }),
        ("attempted of the cell", |it| {
            it["arms"][0]["cells"][0]["counts"]["attempted"] = json!(19);
        }),
        ("good-fraction", |it| it["arms"][0]["cells"][0]["good_fraction"] = json!(0.56)),
        ("goodput", |it| it["arms"][0]["cells"][0]["goodput_per_accelerator"] = json!(5.5)),
        ("interval", |it| it["arms"][0]["cells"][0]["interval_t"]["low"] = json!(0.5)),
        ("knee", |it| it["arms"][0]["knee"]["tested"] = json!({"outcome": "below"})),
        ("difference", |it| it["comparisons"][0]["difference"]["estimate"] = json!(0.31)),
        ("interval of the difference", |it| {
            it["comparisons"][0]["difference"]["interval"]["low"] = json!(0.01);
        }),
    ];
    for (rule, change) in cases {
        let dir = run_dir();
        edit_json(&dir, "analysis.json", change);
        assert!(rules(&dir).contains(&rule), "{rule}: {:?}", rules(&dir));
    }
}

#[test]
fn an_equivalence_or_a_dispersion_that_the_records_do_not_bear_is_found() {
    // t(0.95, 2 df) x 0.05 x sqrt(2) about 0.3: from 0.094 to 0.506, which leaves a margin of 0.5.
    let half = 2.919_985_580_353_726 * 0.05 * 2.0_f64.sqrt();
    let claim = |high: f64, outcome: &str| json!({"tost": {"interval": {"low": 0.3 - half, "high": high}, "outcome": outcome}});
    let found = |equivalence: &Value| {
        let dir = run_dir();
        let text = format!("{CAMPAIGN}[statistics]\ndelta = 0.5\n");
        fs::write(dir.path().join("campaign.toml"), text).unwrap();
        edit_json(&dir, "analysis.json", |it| {
            it["comparisons"][0]["equivalence"] = equivalence.clone();
        });
        rules(&dir)
    };
    assert_eq!(found(&claim(0.3 + half, "INCONCLUSIVE")), [""; 0]);
    assert_eq!(found(&claim(0.3 + half, "EQUIVALENT")), ["equivalence"]);
    assert_eq!(found(&claim(0.4, "INCONCLUSIVE")), ["interval of the equivalence"]);
    let dir = run_dir();
    edit_json(&dir, "analysis.json", |it| {
        it["arms"][0]["cells"][0]["dispersion"] = json!({"phi": 9.0, "word": "OVERDISPERSED"});
    });
    assert_eq!(rules(&dir), ["dispersion", "dispersion"]);
}

#[test]
fn a_win_that_the_records_do_not_bear_is_found() {
    let dir = run_dir();
    let win = json!({"arm": "aware", "floor": "floor", "rate_rps": 10.0, "difference": 0.3});
    edit_json(&dir, "verdict.json", |it| it["wins"] = json!([win]));
    // The interval reaches from -0.004 to 0.604.
    assert_eq!(rules(&dir), ["win"]);
}

#[test]
fn a_repetition_that_was_added_or_removed_is_found() {
    let dir = run_dir();
    repetition(dir.path(), "aware", 3, 10);
    assert_eq!(rules(&dir), ["repetitions"]);
    let dir = run_dir();
    fs::remove_dir_all(dir.path().join("aware-r10/rep2")).unwrap();
    assert!(rules(&dir).contains(&"repetitions"));
}
