//! `goodput verify` on copies of a run directory that differ from it in one thing: each gives its code, and
//! none a number that the records don't bear.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use e2e::agent::Agent;
use e2e::binaries::binary;
use e2e::campaign::{fleet, run_publishable, watch};
use e2e::jsonl::{self, object};
use e2e::process::{Finished, run};
use e2e::require_kernel;
use serde_json::{Value, json};

const PUBLISHABLE: &str = "PUBLISHABLE";
const FOOTNOTE: &str = "PUBLISHABLE_WITH_FOOTNOTE";
const ADD: &str = "ADD_REPLICATES";
const DISCARDED: &str = "DISCARDED";

type Change = fn(&Copy);

/// A copy: what was done to it, by what, and what verify must say.
struct Case {
    what: &'static str,
    change: Change,
    code: &'static str,
    verdict: &'static str,
    exit: i32,
}

/// A copy of the run directory, with two valid repetitions of the arm `aware` and one of the floor.
struct Copy {
    root: PathBuf,
    rep: PathBuf,
    other: PathBuf,
    floor: PathBuf,
}

impl Copy {
    /// Changes the rows of a file of the repetition.
    fn rows(&self, file: &str, change: impl FnOnce(&mut Vec<Value>)) {
        let path = self.rep.join(file);
        let mut rows = jsonl::read(&path).unwrap();
        change(&mut rows);
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        fs::write(path, text).unwrap();
    }

    fn requests(&self, change: impl FnOnce(&mut Vec<Value>)) {
        self.rows("requests.jsonl", change);
    }

    fn put(&self, file: &str, from: &Path) {
        fs::copy(from.join(file), self.rep.join(file)).unwrap();
    }
}

fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = object(path).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Every instant of a row divided by `factor`, and every latency with it.
fn in_other_unit(row: &mut Value, factor: u64) {
    for (key, value) in row.as_object_mut().unwrap() {
        if let (true, Some(ns)) = (key.ends_with("_ns"), value.as_u64()) {
            *value = json!(ns / factor);
        }
    }
}

/// The request ends as a reset one would, in both records.
fn reset(copy: &Copy) {
    let mut trace_id = Value::Null;
    copy.requests(|rows| {
        let row = &mut rows[7];
        trace_id = row["trace_id"].clone();
        for key in ["first_token_ns", "last_token_ns", "done_ns", "framing_end_ns", "ttft_ns"] {
            row[key] = Value::Null;
        }
        for key in ["ttft_from_sent_ns", "tpot_ns", "completion_tokens", "finish_reason"] {
            row[key] = Value::Null;
        }
        (row["class"], row["framing"], row["token_events"]) =
            (json!("reset"), json!("unknown"), json!(0));
    });
    copy.rows("kernel.jsonl", |rows| {
        for row in rows.iter_mut().filter(|row| row["trace_id"] == trace_id) {
            (row["outcome"], row["framing"]) = (json!("reset"), json!("unknown"));
            row["first_token_ns"] = Value::Null;
            row["last_token_ns"] = Value::Null;
        }
    });
}

const CASES: &[Case] = &[
    Case {
        what: "nothing, so that every other code is the change's",
        change: |_| {},
        code: "",
        verdict: PUBLISHABLE,
        exit: 0,
    },
    Case {
        what: "a line deleted",
        change: |copy| copy.requests(|rows| drop(rows.remove(3))),
        code: "INCOMPLETE",
        verdict: ADD,
        exit: 1,
    },
    Case {
        what: "a line duplicated",
        change: |copy| copy.requests(|rows| rows.push(rows[3].clone())),
        code: "ACCOUNTING_BROKEN",
        verdict: ADD,
        exit: 1,
    },
    Case {
        what: "one latency in microseconds",
        change: |copy| {
            copy.requests(|rows| {
                rows[3]["ttft_ns"] = json!(rows[3]["ttft_ns"].as_i64().unwrap() / 1000);
            });
        },
        code: "RECORDS_DISAGREE",
        verdict: ADD,
        exit: 1,
    },
    Case {
        what: "a request that was reset, in both records: a miss, and no fault of the run",
        change: reset,
        code: "",
        verdict: PUBLISHABLE,
        exit: 0,
    },
    Case {
        what: "an error class turned to ok",
        change: |copy| {
            reset(copy);
            copy.requests(|rows| rows[7]["class"] = json!("ok"));
        },
        code: "RECORDS_DISAGREE",
        verdict: DISCARDED,
        exit: 1,
    },
    Case {
        what: "one Invalid framing by the client",
        change: |copy| {
            copy.requests(|rows| {
                (rows[3]["framing"], rows[3]["class"]) = (json!("invalid"), json!("framing"));
            });
        },
        code: "FRAMING_INVALID",
        verdict: DISCARDED,
        exit: 1,
    },
    Case {
        what: "one Invalid framing by the kernel",
        change: |copy| {
            copy.rows("kernel.jsonl", |rows| {
                // Readiness probes are in the record too, without a trace id.
                let of_request =
                    |row: &&mut Value| row["leg"] == "client" && row["trace_id"].is_string();
                let leg = rows.iter_mut().find(of_request).unwrap();
                (leg["framing"], leg["outcome"]) = (json!("invalid"), json!("framing"));
            });
        },
        code: "CROSSCHECK_DISAGREES",
        verdict: DISCARDED,
        exit: 1,
    },
    Case {
        what: "one repetition missing",
        change: |copy| fs::remove_dir_all(&copy.rep).unwrap(),
        code: "MISSING_CELL",
        verdict: ADD,
        exit: 1,
    },
    Case {
        what: "a repetition of the other arm copied in",
        change: |copy| {
            fs::remove_dir_all(&copy.rep).unwrap();
            copy_dir(&copy.floor, &copy.rep);
        },
        code: "RECORDS_DISAGREE",
        verdict: ADD,
        exit: 1,
    },
    Case {
        what: "gateway counters frozen",
        change: |copy| {
            for entry in fs::read_dir(copy.rep.parent().unwrap()).unwrap() {
                let path = entry.unwrap().path().join("gateway.json");
                if path.exists() {
                    edit(&path, |file| file["after"] = file["before"].clone());
                }
            }
        },
        code: "DECISION_FAILED",
        verdict: DISCARDED,
        exit: 1,
    },
    Case {
        what: "SLO edited after the run",
        change: |copy| {
            edit(&copy.root.join("slo.json"), |slo| {
                slo["ttft_ns"] = json!(2 * slo["ttft_ns"].as_u64().unwrap());
            });
        },
        code: "PREREG_CHANGED",
        verdict: DISCARDED,
        exit: 1,
    },
    Case {
        what: "SLO of the campaign edited after the run",
        change: |copy| {
            let path = copy.root.join("campaign.toml");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, text.replace("ttft_ms = 9000.0", "ttft_ms = 9001.0")).unwrap();
        },
        code: "PREREG_CHANGED",
        verdict: DISCARDED,
        exit: 1,
    },
    Case {
        what: "kernel complete: false",
        change: |copy| {
            edit(&copy.rep.join("run.json"), |run| {
                run["agents"][0]["complete"] = json!(false);
                run["agents"][0]["reasons"] = json!(["ring_full"]);
            });
        },
        code: "KERNEL_INCOMPLETE",
        verdict: FOOTNOTE,
        exit: 0,
    },
    Case {
        what: "torn last line of requests.jsonl",
        change: |copy| torn(&copy.rep.join("requests.jsonl")),
        code: "TORN_RECORD",
        verdict: ADD,
        exit: 1,
    },
    Case {
        what: "torn last line of kernel.jsonl",
        change: |copy| torn(&copy.rep.join("kernel.jsonl")),
        code: "TORN_RECORD",
        verdict: ADD,
        exit: 1,
    },
    Case {
        what: "mixed units: every instant of one repetition in microseconds",
        change: |copy| {
            copy.requests(|rows| rows.iter_mut().for_each(|row| in_other_unit(row, 1000)));
        },
        code: "RECORDS_DISAGREE",
        verdict: DISCARDED,
        exit: 1,
    },
    Case {
        what: "mixed units: the kernel's record of one repetition in microseconds",
        change: |copy| {
            copy.rows("kernel.jsonl", |rows| {
                rows.iter_mut().for_each(|row| in_other_unit(row, 1000));
            });
        },
        code: "CROSSCHECK_DISAGREES",
        verdict: DISCARDED,
        exit: 1,
    },
    Case {
        what: "shards that do not fit: the requests of another repetition",
        change: |copy| copy.put("requests.jsonl", &copy.other),
        code: "RECORDS_DISAGREE",
        verdict: ADD,
        exit: 1,
    },
    Case {
        what: "shards that do not fit: the kernel's record of another repetition",
        change: |copy| copy.put("kernel.jsonl", &copy.other),
        code: "DELIVERY_UNKNOWN",
        verdict: FOOTNOTE,
        exit: 0,
    },
    Case {
        what: "shards that do not fit: the requests of two repetitions in one file",
        change: |copy| {
            let more = jsonl::read(&copy.other.join("requests.jsonl")).unwrap();
            copy.requests(|rows| rows.extend(more));
        },
        code: "ACCOUNTING_BROKEN",
        verdict: ADD,
        exit: 1,
    },
];

fn torn(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() - 9]).unwrap();
}

/// Numbers of the valid repetitions of an arm, by the analysis.
fn valid(root: &Path, arm: &str) -> Vec<PathBuf> {
    let analysis = object(&root.join("analysis.json")).unwrap();
    let arms = analysis["arms"].as_array().unwrap();
    let cell = &arms.iter().find(|it| it["name"] == arm).unwrap()["cells"][0];
    let repetitions = cell["repetitions"].as_array().unwrap().iter();
    let numbers = repetitions.filter(|it| it["valid"] == true).map(|it| it["repetition"].clone());
    numbers.map(|number| PathBuf::from(format!("{arm}-r40/rep{number}"))).collect()
}

/// A copy of `root`. Its middle repetition is the one to change: what is gone there leaves a gap.
fn copy(root: &Path, to: &Path) -> Copy {
    copy_dir(root, to);
    let (aware, floor) = (valid(root, "aware"), valid(root, "floor"));
    Copy {
        root: to.to_owned(),
        rep: to.join(&aware[1]),
        other: to.join(&aware[2]),
        floor: to.join(&floor[1]),
    }
}

fn verify(root: &Path) -> Finished {
    let mut command = Command::new(binary("goodput").unwrap());
    command.arg("verify").arg(root).arg("--json");
    run(command, Duration::from_secs(60)).unwrap()
}

fn codes(verdict: &Value) -> Vec<&str> {
    let findings = verdict["findings"].as_array().into_iter().flatten();
    findings.filter_map(|finding| finding["code"].as_str()).collect()
}

#[test]
fn every_altered_copy_gives_its_code_and_exit_code() -> anyhow::Result<()> {
    require_kernel!();
    let fleet = fleet("")?;
    let agent = Agent::start(&watch(&fleet)?)?;
    let folder = tempfile::tempdir()?;
    let finished = run_publishable(folder.path(), &fleet, agent.api())?;
    let root = folder.path().join("run");
    let before = object(&root.join("verdict.json"))?;
    assert_eq!(before["verdict"], PUBLISHABLE, "{}\n{}", finished.stdout, finished.stderr);
    let mut wrong = Vec::new();
    for case in CASES {
        let folder = tempfile::tempdir()?;
        let copy = copy(&root, &folder.path().join("copy"));
        (case.change)(&copy);
        let finished = verify(&copy.root);
        let verdict: Value = serde_json::from_str(&finished.stdout).unwrap_or_default();
        let codes = codes(&verdict);
        println!("{}: {} {:?} {codes:?}", case.what, verdict["verdict"], finished.status.code());
        let coded = case.code.is_empty() || codes.iter().any(|code| code.starts_with(case.code));
        let judged = verdict["verdict"] == case.verdict;
        if !(coded && judged && finished.status.code() == Some(case.exit)) {
            wrong.push(format!("{}: {verdict:#}\n{}", case.what, finished.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    what_cannot_be_read_is_bad_input(&root);
    Ok(())
}

fn what_cannot_be_read_is_bad_input(root: &Path) {
    let cases: [(&str, Change); 3] = [
        ("schema is goodput.request/2, expected goodput.request/1", |copy| {
            copy.requests(|rows| rows[3]["schema"] = json!("goodput.request/2"));
        }),
        ("goodput.slo/9", |copy| {
            edit(&copy.root.join("slo.json"), |slo| slo["schema"] = json!("goodput.slo/9"));
        }),
        ("requests.jsonl:4:", |copy| {
            copy.requests(|rows| rows[3]["ttft_ns"] = json!("0.2 s"));
        }),
    ];
    for (part, change) in cases {
        let folder = tempfile::tempdir().unwrap();
        let copy = copy(root, &folder.path().join("copy"));
        change(&copy);
        let finished = verify(&copy.root);
        assert_eq!(finished.status.code(), Some(2), "{part}: {}", finished.stderr);
        assert!(finished.stderr.contains(part), "{part}: {}", finished.stderr);
        assert!(finished.stdout.is_empty(), "{part}: {}", finished.stdout);
    }
}
