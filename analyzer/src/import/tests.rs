//! Small exports in the shape of each tool, written by hand: no tool made them.

use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::outcome::Class;
use crate::run::{Judged, analyze_dir};
use crate::rundir::ImportFile;
use crate::testkit::Agreeing;
use crate::verify::{Code, Verdict};

const N: usize = 40;
/// The tools' clocks count from 1970, or from the start of the host.
const EPOCH_S: f64 = 1_790_000_000.0;

/// TTFT of a request: 100 ms, and 400 ms for every twentieth.
fn ttft_s(at: usize) -> f64 {
    if at % 20 == 19 { 0.4 } else { 0.1 }
}

pub(crate) fn vllm(seed: u64) -> Value {
    let all = 0..N;
    let mean = all.clone().map(ttft_s).sum::<f64>() / N as f64;
    json!({
        "date": "20261130-120000", "backend": "openai-chat", "model_id": "m", "num_prompts": N,
        "request_rate": 10.0, "burstiness": 1.0, "max_concurrency": null, "duration": 6.0,
        "completed": N, "failed": 0, "mean_ttft_ms": mean * 1e3, "mean_itl_ms": 10.0, "a_new_key": {"x": [1]},
        "input_lens": vec![100; N], "output_lens": vec![11; N],
        "ttfts": all.clone().map(ttft_s).collect::<Vec<_>>(), "itls": vec![vec![0.01; 10]; N],
        "start_times": all.map(|at| 500.0 + seed as f64 + at as f64 / 10.0).collect::<Vec<_>>(),
        "generated_texts": vec!["x"; N], "errors": vec![""; N],
    })
}

pub(crate) fn aiperf_line(seed: u64, at: usize) -> Value {
    let start = 1_790_000_000_000_000_000 + seed * 1_000_000_000 + at as u64 * 100_000_000;
    let ttft_ms = if at % 20 == 19 { 400 } else { 100 };
    json!({
        "metadata": {
            "session_num": at, "x_request_id": "r", "conversation_id": "c", "turn_index": 0,
            "credit_issued_ns": start - 200_000, "request_start_ns": start, "request_ack_ns": start + 1,
            "request_end_ns": start + (ttft_ms + 101) * 1_000_000, "worker_id": "w",
            "record_processor_id": "p", "benchmark_phase": "profiling", "was_cancelled": false,
        },
        "metrics": {
            "time_to_first_token": {"value": ttft_ms, "unit": "ms"},
            "request_latency": {"value": ttft_ms + 100, "unit": "ms"},
            "inter_token_latency": {"value": 10.0, "unit": "ms"},
            "inter_chunk_latency": {"value": vec![10.0; 10], "unit": "ms"},
            "output_sequence_length": {"value": 11, "unit": "tokens"},
            "input_sequence_length": {"value": 100, "unit": "tokens"},
        },
        "error": null,
    })
}

fn aiperf(seed: u64) -> Vec<Value> {
    (0..N).map(|at| aiperf_line(seed, at)).collect()
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

pub(crate) fn guidellm(seed: u64) -> Value {
    let stats = |at: usize| {
        let start = EPOCH_S + seed as f64 + at as f64 / 10.0;
        let first = start + ttft_s(at);
        json!({
            "type_": "generative_request_stats", "request_id": "r", "response_id": "id",
            "prompt_tokens": 100, "output_tokens": 11, "cached_tokens": 40,
            "time_to_first_token_ms": ttft_s(at) * 1e3, "inter_token_latency_ms": 10.0,
            "info": {"status": "completed", "error": null, "timings": {
                "targeted_start": start - 0.0005, "request_start": start, "first_token_iteration": first,
                "last_token_iteration": first + 0.1, "token_iterations": 11, "request_end": first + 0.101,
            }},
        })
    };
    json!({
        "metadata": {"version": 1, "guidellm_version": "0.8.1"}, "args": {},
        "benchmarks": [{
            "config": {"strategy": {"type_": "constant", "rate": 10.0}},
            "metrics": {"request_totals": {"successful": N, "incomplete": 0, "errored": 0, "total": N}},
            "requests": {"successful": (0..N).map(stats).collect::<Vec<_>>(), "incomplete": [], "errored": [], "total": null},
        }],
    })
}

fn texts(tool: Tool, seeds: std::ops::Range<u64>) -> Vec<String> {
    let text = |seed| match tool {
        Tool::VllmBench => vllm(seed).to_string(),
        Tool::Aiperf => lines(&aiperf(seed)),
        Tool::Guidellm => guidellm(seed).to_string(),
    };
    seeds.map(text).collect()
}

fn request(tool: Tool, arms: Vec<Arm>) -> Request {
    Request {
        tool,
        arms,
        name: "imported".to_owned(),
        slo: Slo { ttft_ms: 300.0, tpot_ms: 20.0, origin: "by hand".to_owned() },
        target: 0.9,
        accelerators: 2,
        rate_rps: (tool == Tool::Aiperf).then_some(10.0),
    }
}

/// Imports texts as repetitions of one arm.
fn imported(tool: Tool, texts: &[String]) -> Result<Imported, ImportError> {
    let files = (0..texts.len()).map(|nth| format!("{nth}.json").into()).collect();
    let read = |path: &Path| {
        let nth: usize = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        Ok(texts[nth].clone().into_bytes())
    };
    import_with(&request(tool, vec![Arm { name: "a".to_owned(), files }]), &read)
}

fn refused(tool: Tool, text: String) -> String {
    imported(tool, &[text]).unwrap_err().to_string()
}

fn judged(imported: &Imported) -> (tempfile::TempDir, Judged) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run");
    write(imported, &root).unwrap();
    let judged = analyze_dir(&root, &Agreeing).unwrap();
    (dir, judged)
}

#[test]
fn every_tool_gives_the_same_figures_and_what_lacks_bars_publication() {
    for tool in Tool::ALL {
        let imported = imported(tool, &texts(tool, 0..5)).unwrap();
        let (_dir, judged) = judged(&imported);
        let cell = &judged.analysis.arms[0].cells[0];
        let (name, verdict) = (tool.name(), &judged.verdict);
        assert_eq!(cell.valid, 5, "{name}: {:#?}", cell.repetitions[0].findings);
        assert_eq!((cell.counts.good, cell.counts.attempted), (190, 200), "{name}");
        // 10 rps x 0.95 / 2 accelerators.
        assert_eq!(cell.goodput_per_accelerator, Some(4.75), "{name}");
        assert!((cell.latency.tpot_p50_ms.unwrap() - 10.0).abs() < 1e-3, "{name}");
        assert_eq!(verdict.verdict, Verdict::Discarded, "{name}");
        let said = verdict.imported.as_ref().unwrap();
        assert_eq!(
            said.on_what_is_there,
            Verdict::PublishableWithFootnote,
            "{:#?}",
            verdict.findings
        );
        for lack in Lack::OF_EVERY_EXPORT.into_iter().filter(|lack| lack.discards()) {
            assert!(
                said.lacks.iter().any(|it| it.starts_with(lack.name())),
                "{name} {}",
                lack.name()
            );
        }
        let row = &imported.repetitions[0].records[0];
        assert_eq!(
            (row.class, row.done_ns, row.framing_end_ns, row.status),
            (Class::Ok, None, None, None)
        );
        assert!(row.ttft_ns >= row.ttft_from_sent_ns, "{name}");
    }
}

#[test]
fn too_few_or_noisy_repetitions_are_told_on_what_is_there() {
    let (_dir, judged) = judged(&imported(Tool::VllmBench, &texts(Tool::VllmBench, 0..3)).unwrap());
    assert_eq!(judged.verdict.imported.unwrap().on_what_is_there, Verdict::AddReplicates);
    assert_eq!(judged.verdict.add_replicates, None);
}

#[test]
fn a_run_that_is_imported_twice_is_a_copy() {
    let mut twice = texts(Tool::VllmBench, 0..4);
    twice.push(twice[0].clone());
    let (_dir, judged) = judged(&imported(Tool::VllmBench, &twice).unwrap());
    let cell = &judged.analysis.arms[0].cells[0];
    assert_eq!(cell.valid, 3);
    let findings = &cell.repetitions[4].findings;
    assert!(
        findings
            .iter()
            .any(|it| it.code == Code::RecordsDisagree && it.detail.contains("a r10 rep1"))
    );
}

#[test]
fn an_entry_that_is_removed_from_the_file_changes_nothing() {
    let imported = imported(Tool::Guidellm, &texts(Tool::Guidellm, 0..5)).unwrap();
    let (dir, before) = judged(&imported);
    let root = dir.path().join("run");
    let mut file = imported.import;
    file.lacks.clear();
    crate::rundir::write_json(&root.join(ImportFile::NAME), &file).unwrap();
    let after = analyze_dir(&root, &Agreeing).unwrap().verdict.imported.unwrap();
    assert_eq!(Some(after), before.verdict.imported);
    std::fs::remove_file(root.join(ImportFile::NAME)).unwrap();
    let error = analyze_dir(&root, &Agreeing).unwrap_err().to_string();
    assert!(error.contains("import.json"), "{error}");
}

#[test]
fn two_arms_are_compared_though_their_schedules_differ() {
    let texts = texts(Tool::VllmBench, 0..10);
    let files =
        |range: std::ops::Range<usize>| range.map(|nth| format!("{nth}.json").into()).collect();
    let arms = vec![
        Arm { name: "floor".to_owned(), files: files(0..5) },
        Arm { name: "aware".to_owned(), files: files(5..10) },
    ];
    let read = |path: &Path| {
        let nth: usize = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        // An arm of its own timing.
        let text = if nth < 5 { texts[nth].clone() } else { texts[nth].replace("500.", "600.") };
        Ok(text.into_bytes())
    };
    let imported = import_with(&request(Tool::VllmBench, arms), &read).unwrap();
    let (_dir, judged) = judged(&imported);
    assert_eq!(judged.analysis.comparisons.len(), 1);
    assert!(
        judged
            .analysis
            .arms
            .iter()
            .all(|arm| arm.cells[0].valid == 5 && arm.floor == (arm.name == "floor"))
    );
}

#[test]
fn failures_are_attempted_and_classed() {
    let mut run = vllm(0);
    run["errors"][3] = json!("Service Unavailable");
    run["errors"][4] = json!("Traceback (most recent call last):\nKeyError: 'choices'");
    for key in ["ttfts", "output_lens"] {
        run[key][3] = json!(0);
        run[key][4] = json!(0);
    }
    run["itls"][3] = json!([]);
    run["itls"][4] = json!([]);
    run["completed"] = json!(N - 2);
    let delivered = (0..N).filter(|at| ![3, 4].contains(at));
    run["mean_ttft_ms"] = json!(delivered.map(ttft_s).sum::<f64>() / (N - 2) as f64 * 1e3);
    let imported = imported(Tool::VllmBench, &[run.to_string()]).unwrap();
    let classes: Vec<Class> = imported.repetitions[0].records.iter().map(|row| row.class).collect();
    assert_eq!(
        (classes[3], classes[4], classes[5]),
        (Class::HttpStatus, Class::Truncated, Class::Ok)
    );
    let (_dir, judged) = judged(&imported);
    let findings = &judged.analysis.arms[0].cells[0].repetitions[0].findings;
    assert!(findings.iter().any(|it| it.code == Code::HangOrTruncation), "{findings:#?}");
}

#[test]
fn a_single_token_and_tokens_at_one_instant_have_no_tpot() {
    let mut run = vllm(0);
    run["output_lens"][0] = json!(1);
    run["itls"][0] = json!([]);
    run["itls"][1] = json!([0.0]);
    run["mean_itl_ms"] = json!(38.0 * 100.0 / 381.0);
    let imported = imported(Tool::VllmBench, &[run.to_string()]).unwrap();
    let rows = &imported.repetitions[0].records;
    assert_eq!((rows[0].class, rows[0].tpot_ns), (Class::SingleToken, None));
    assert_eq!((rows[1].class, rows[1].tpot_ns), (Class::Ok, None));
    assert!(rows.iter().all(|row| row.contradiction_in_import().is_none()));
}

fn assert_told(tool: Tool, value: Value, parts: &[&str]) {
    let text = match value {
        Value::Array(values) => lines(&values),
        value => value.to_string(),
    };
    let message = refused(tool, text);
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    assert!(message.starts_with("0.json: "), "{message}");
}

#[test]
fn what_vllm_did_not_save_is_named_with_the_option_that_saves_it() {
    for key in [
        "ttfts",
        "itls",
        "start_times",
        "input_lens",
        "output_lens",
        "errors",
        "completed",
        "duration",
    ] {
        let mut run = vllm(0);
        run.as_object_mut().unwrap().remove(key);
        assert_told(Tool::VllmBench, run, &[key, "--save-detailed"]);
    }
    let change = |key: &str, value: Value| {
        let mut run = vllm(0);
        run[key] = value;
        run
    };
    assert_told(Tool::VllmBench, change("mean_ttft_ms", json!(null)), &["--percentile-metrics"]);
    assert_told(Tool::VllmBench, change("request_rate", json!("inf")), &["--request-rate"]);
    assert_told(Tool::VllmBench, change("ramp_up_strategy", json!("linear")), &["one rate"]);
    assert_told(Tool::VllmBench, change("errors", json!([""])), &["errors has 1 entries"]);
    assert_told(Tool::VllmBench, change("completed", json!(3)), &["completed is 3"]);
    assert_told(Tool::VllmBench, change("request_rate", json!(1000.0)), &["began at"]);
    assert_told(Tool::VllmBench, change("request_rate", json!(null)), &["--rate"]);
    assert!(refused(Tool::VllmBench, String::new()).contains("no run in it"));
    assert!(refused(Tool::VllmBench, "{\"ttfts\": 3}".to_owned()).contains("--save-detailed"));
}

#[test]
fn seconds_that_are_milliseconds_are_refused() {
    let scaled = |key: &str, factor: f64| {
        let mut run = vllm(0);
        let values = run[key].as_array_mut().unwrap();
        values.iter_mut().for_each(|it| *it = json!(it.as_f64().unwrap() * factor));
        run
    };
    assert_told(Tool::VllmBench, scaled("ttfts", 1e3), &["unit"]);
    assert_told(Tool::VllmBench, scaled("ttfts", 1e-3), &["unit"]);
    assert_told(Tool::VllmBench, scaled("start_times", 1e3), &["unit"]);
    let mut run = vllm(0);
    run["itls"] = json!(vec![vec![10.0; 10]; N]);
    assert_told(Tool::VllmBench, run, &["unit"]);
    let mut run = vllm(0);
    run["ttfts"][0] = json!(-0.1);
    run["mean_ttft_ms"] = json!(run["mean_ttft_ms"].as_f64().unwrap() - 5.0);
    assert_told(Tool::VllmBench, run, &["ttfts of request 0 is -0.1"]);
}

#[test]
fn aiperf_units_are_read_and_checked() {
    let with = |line: usize, change: &dyn Fn(&mut Value)| {
        let mut rows = aiperf(0);
        change(&mut rows[line]);
        Value::Array(rows)
    };
    let all = |change: &dyn Fn(&mut Value)| {
        let mut rows = aiperf(0);
        rows.iter_mut().for_each(change);
        Value::Array(rows)
    };
    let unit = |unit: &'static str| {
        move |row: &mut Value| row["metrics"]["time_to_first_token"]["unit"] = json!(unit)
    };
    assert_told(Tool::Aiperf, with(7, &unit("s")), &["line 8", "unit"]);
    assert_told(Tool::Aiperf, with(7, &unit("tokens")), &["line 8", "no time"]);
    assert_told(Tool::Aiperf, with(7, &unit("us")), &["since line 1 it was in ms"]);
    assert_told(Tool::Aiperf, all(&unit("s")), &["unit"]);
    assert_told(Tool::Aiperf, all(&unit("us")), &["unit"]);
    // A whole export in another unit, each figure under its right name.
    let micro = |row: &mut Value| {
        for key in ["time_to_first_token", "request_latency", "inter_token_latency"] {
            let metric = &mut row["metrics"][key];
            *metric = json!({"value": metric["value"].as_f64().unwrap() * 1e3, "unit": "us"});
        }
    };
    let Value::Array(rows) = all(&micro) else { panic!() };
    let same = imported(Tool::Aiperf, &[lines(&rows)]).unwrap();
    let plain = imported(Tool::Aiperf, &texts(Tool::Aiperf, 0..1)).unwrap();
    assert_eq!(same.repetitions, plain.repetitions);
    // The same under a wrong name.
    let wrong = |row: &mut Value| {
        for key in ["time_to_first_token", "request_latency", "inter_token_latency"] {
            row["metrics"][key]["unit"] = json!("us");
        }
    };
    assert_told(Tool::Aiperf, all(&wrong), &["request_start_ns", "unit"]);
}

#[test]
fn aiperf_failures_and_other_files() {
    let mut rows = aiperf(0);
    rows[0]["error"] = json!({"code": 503, "type": "HTTPError", "message": "no"});
    rows[1]["error"] = json!({"code": 499, "type": "RequestCancellationError", "message": "x"});
    rows[1]["metadata"]["was_cancelled"] = json!(true);
    rows[2]["metadata"]["benchmark_phase"] = json!("warmup");
    rows[0]["metrics"] = json!({});
    let run = imported(Tool::Aiperf, &[lines(&rows)]).unwrap();
    let records = &run.repetitions[0].records;
    assert_eq!(records.len(), N - 1);
    assert_eq!((records[0].class, records[0].status), (Class::HttpStatus, Some(503)));
    assert_eq!(records[1].class, Class::CancelledByTool);
    assert_told(
        Tool::Aiperf,
        json!({"request_throughput": {"avg": 1}}),
        &["line 1", "profile_export.jsonl"],
    );
    let mut plain = aiperf(0);
    plain[5]["metrics"].as_object_mut().unwrap().remove("time_to_first_token");
    assert_told(Tool::Aiperf, Value::Array(plain), &["line 6", "--streaming"]);
    assert!(refused(Tool::Aiperf, "\n".to_owned()).contains("no request"));
}

#[test]
fn guidellm_reports_are_read_whole_or_not_at_all() {
    let with = |pointer: &str, value: Value| {
        let mut report = guidellm(0);
        *report.pointer_mut(pointer).unwrap() = value;
        report
    };
    let requests = "/benchmarks/0/requests/successful";
    assert_told(Tool::Guidellm, with("/metadata/version", json!(2)), &["version 2"]);
    assert_told(Tool::Guidellm, with("/benchmarks", json!([])), &["no benchmark"]);
    assert_told(
        Tool::Guidellm,
        with("/benchmarks/0/metrics/request_totals/successful", json!(N + 1)),
        &["--sample-requests"],
    );
    assert_told(
        Tool::Guidellm,
        with("/benchmarks/0/config/strategy/type_", json!("concurrent")),
        &["closed loop", "constant"],
    );
    let ttft = format!("{requests}/4/time_to_first_token_ms");
    assert_told(Tool::Guidellm, with(&ttft, json!(0.1)), &["request 4", "unit"]);
    let start = format!("{requests}/4/info/timings/request_start");
    assert_told(Tool::Guidellm, with(&start, json!(EPOCH_S * 1e3)), &["request 4", "seconds"]);
    let token = format!("{requests}/4/info/timings/first_token_iteration");
    assert_told(Tool::Guidellm, with(&token, json!(null)), &["not streamed"]);
    let mut report = guidellm(0);
    let moved = report.pointer_mut(requests).unwrap().as_array_mut().unwrap().pop().unwrap();
    report["benchmarks"][0]["requests"]["incomplete"] = json!([moved]);
    report["benchmarks"][0]["metrics"]["request_totals"] =
        json!({"successful": N - 1, "incomplete": 1, "errored": 0});
    let run = imported(Tool::Guidellm, &[report.to_string()]).unwrap();
    assert_eq!(run.repetitions[0].records[N - 1].class, Class::CancelledByTool);
    assert_eq!(run.import.tool_version.as_deref(), Some("0.8.1"));
}

#[test]
fn nothing_is_written_over() {
    let imported = imported(Tool::VllmBench, &texts(Tool::VllmBench, 0..1)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let error = write(&imported, dir.path()).unwrap_err().to_string();
    assert!(error.contains("exists already"), "{error}");
}
