//! Bad campaigns are refused with file, line and mend; the example is a good one.

use std::path::Path;

use super::*;

const GOOD: &str = r#"name = "example"
seed = 7
run_dir = "target/run"
[trace]
path = "trace.jsonl"
[request]
model = "m"
[slo]
multiple_of_baseline = { ttft_multiple = 5.0, tpot_multiple = 3.0 }
[load]
rates_rps = [50, 40]
arrivals = "poisson"
[[arm]]
name = "floor"
floor = true
vip = "http://127.0.0.1:1"
accelerators = 4
[[arm]]
name = "aware"
vip = "http://127.0.0.1:2"
accelerators = 4
[[backend]]
address = "127.0.0.1:3"
capacity_tokens_per_s = 1000
"#;

/// 65 characters.
const LONG_NAME: &str =
    "name = \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"";

fn parse(text: &str) -> Result<Campaign, CampaignError> {
    Campaign::parse(text.as_bytes().to_vec(), Path::new("x/campaign.toml"))
}

#[test]
fn defaults_are_the_pinned_ones() {
    let campaign = parse(GOOD).unwrap();
    let keys = campaign.keys();
    assert_eq!(keys.slo.target, 0.9);
    assert_eq!((keys.load.repetitions, keys.load.max_repetitions), (5, 15));
    assert_eq!(keys.statistics.cv_bound, 0.10);
    assert_eq!(campaign.rates(), [40.0, 50.0]);
    assert_eq!(campaign.floor().name, "floor");
    assert_eq!(campaign.resolve(Path::new("trace.jsonl")), Path::new("x/trace.jsonl"));
}

#[test]
fn connections_are_fresh_unless_the_campaign_keeps_them() {
    use crate::replay::Connections;
    assert_eq!(parse(GOOD).unwrap().keys().replay.connections, Connections::Fresh);
    let with = |value: &str| format!("{GOOD}[replay]\nconnections = \"{value}\"\n");
    let kept = parse(&with("keep-alive")).unwrap();
    assert_eq!(kept.keys().replay.connections, Connections::KeepAlive);
    let error = parse(&with("pooled")).unwrap_err().to_string();
    assert!(error.contains("campaign.toml") && error.contains("keep-alive"), "{error}");
}

#[test]
fn faults_name_file_line_key_and_mend() {
    let cases = [
        ("rates_rps = [50, 40]", "rates_rps = [50, -1]", "line 11: [load] rates_rps", "above 0"),
        ("rates_rps = [50, 40]", "rates_rps = [50, nan]", "line 11: [load] rates_rps", "above 0"),
        ("rates_rps = [50, 40]", "rates_rps = [50, 50]", "line 11", "once"),
        ("rates_rps = [50, 40]", "rates_rps = [50, 1e9]", "line 11: [load] rates_rps", "at most"),
        ("[slo]", "[slo]\nstall_s = 1e300", "line 9: [slo] stall_s", "seconds"),
        (
            "[load]",
            "[load]\nmax_repetitions = 4000000000",
            "line 11: [load] max_rep",
            "at most 1000",
        ),
        (
            "path = \"t",
            "bytes_per_token = 0\npath = \"t",
            "line 5: [trace] bytes_per_token",
            "usual",
        ),
        ("[slo]", "[slo]\ntarget = 0", "line 9: [slo] target", "above 0"),
        (
            "tpot_multiple = 3.0",
            "tpot_multiple = 3.0, requests = 1000000000000",
            "line 9: [slo] multiple_of_baseline",
            "at most 10000",
        ),
        (
            "[[arm]]",
            "[statistics]\nconfidence = 0.5\n[[arm]]",
            "line 14: [statistics] confidence",
            "0.95",
        ),
        ("[[arm]]", "[statistics]\nalpha = 0.9\n[[arm]]", "line 14: [statistics] alpha", "0.05"),
        (
            "[[arm]]",
            "[statistics]\ncv_bound = 1.5\n[[arm]]",
            "line 14: [statistics] cv_bound",
            "0.10",
        ),
        ("http://127.0.0.1:2", "http://127.0.0.1:1/", "line 20: [arm] vip", "of its own"),
        ("name = \"aware\"", LONG_NAME, "line 19: [arm] name", "at most 64"),
        ("name = \"example\"", LONG_NAME, "line 1: name", "1 to 64"),
        ("floor = true\n", "", "line 13: [arm] floor", "exactly one arm"),
        ("name = \"aware\"", "name = \"a/b\"", "line 19: [arm] name", "letters"),
        ("name = \"aware\"", "name = \"floor\"", "line 19: [arm] name", "its own name"),
        ("http://127.0.0.1:2", "https://127.0.0.1:2", "line 20: [arm] vip", "http://"),
        ("\"127.0.0.1:3\"", "\"nowhere\"", "line 23: [backend] address", "10.0.0.5:8000"),
        ("tpot_multiple = 3.0", "tpot_multiple = 3.0, requests = 9", "line 9", "at least 100"),
        ("multiple_of_baseline", "#", "line 8: [slo] multiple_of_baseline", "fixed"),
    ];
    for (good, bad, place, mend) in cases {
        let error = parse(&GOOD.replacen(good, bad, 1)).unwrap_err().to_string();
        for part in ["x/campaign.toml", place, mend] {
            assert!(error.contains(part), "{bad}: {error} lacks {part}");
        }
    }
}

#[test]
fn unknown_and_missing_keys_are_refused_with_their_line() {
    let unknown = parse(&GOOD.replace("seed = 7", "seed = 7\nsed = 8")).unwrap_err().to_string();
    assert!(unknown.contains("line 3") && unknown.contains("sed"), "{unknown}");
    let missing = parse(&GOOD.replace("seed = 7\n", "")).unwrap_err().to_string();
    assert!(missing.contains("seed"), "{missing}");
    let nested = parse(&GOOD.replace("accelerators = 4\n[[b", "accelerator = 4\n[[b")).unwrap_err();
    assert!(nested.to_string().contains("accelerator"), "{nested}");
}
