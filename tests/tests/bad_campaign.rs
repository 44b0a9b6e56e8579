//! Bad campaigns: exit code 2, one clear message that names the mend, and nothing written.

use std::fs;
use std::process::Command;
use std::time::Duration;

use e2e::binaries::binary;
use e2e::process::run;

const CAMPAIGN: &str = r#"
name = "bad"
seed = 1
run_dir = "run"
[trace]
path = "trace.jsonl"
[request]
model = "sim-model"
[slo]
fixed = { ttft_ms = 400.0, tpot_ms = 40.0, origin = "a test's own" }
[load]
rates_rps = [40]
arrivals = "constant"
[[arm]]
name = "floor"
floor = true
vip = "http://127.0.0.1:1"
accelerators = 1
[[arm]]
name = "other"
vip = "http://127.0.0.1:2"
accelerators = 1
[[backend]]
address = "127.0.0.1:1"
capacity_tokens_per_s = 1000.0
"#;
const ROW: &str =
    r#"{"timestamp": 0, "input_length": 600, "output_length": 8, "hash_ids": [1, 2]}"#;

struct Bad {
    what: &'static str,
    campaign: String,
    trace: Option<String>,
    said: &'static [&'static str],
}

fn cases() -> Vec<Bad> {
    let bad =
        |what, campaign: String, trace: Option<String>, said| Bad { what, campaign, trace, said };
    let row = |timestamp: &str| {
        Some(ROW.replace("\"timestamp\": 0", &format!("\"timestamp\": {timestamp}")))
    };
    vec![
        bad(
            "unknown key",
            CAMPAIGN.replace("seed = 1", "sede = 1"),
            row("0"),
            &["sede", "campaign.toml"],
        ),
        bad("unreadable trace", CAMPAIGN.to_owned(), None, &["trace.jsonl"]),
        bad("negative timestamp", CAMPAIGN.to_owned(), row("-5"), &["trace.jsonl:1", "timestamp"]),
        bad("NaN timestamp", CAMPAIGN.to_owned(), row("NaN"), &["trace.jsonl:1"]),
        bad("https VIP", CAMPAIGN.replacen("http://127", "https://127", 1), row("0"), &["https"]),
        bad("unreachable VIP", CAMPAIGN.to_owned(), row("0"), &["127.0.0.1:1"]),
    ]
}

#[test]
fn every_bad_campaign_is_refused_before_anything_is_written() -> anyhow::Result<()> {
    let mut faults = Vec::new();
    for case in cases() {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("campaign.toml"), &case.campaign)?;
        if let Some(trace) = &case.trace {
            fs::write(folder.path().join("trace.jsonl"), format!("{trace}\n"))?;
        }
        let mut command = Command::new(binary("goodput")?);
        command.args(["run", "campaign.toml"]).current_dir(folder.path());
        let finished = run(command, Duration::from_secs(30))?;
        let said = format!("{}{}", finished.stdout, finished.stderr);
        if finished.status.code() != Some(2) {
            faults.push(format!("{}: {}: {said}", case.what, finished.status));
        }
        for word in case.said {
            if !said.contains(word) {
                faults.push(format!("{}: `{word}` is not in: {said}", case.what));
            }
        }
        if folder.path().join("run").exists() {
            faults.push(format!("{}: the run directory was made", case.what));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}
