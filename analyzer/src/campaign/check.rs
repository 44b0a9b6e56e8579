//! Values that parse but make no sense.

use std::collections::BTreeSet;

use super::error::Fault;
use super::keys::{ArmKeys, CampaignKeys, Comparison};

type Check = Result<(), Fault>;

fn fault(
    table: (&'static str, usize),
    key: &'static str,
    problem: impl Into<String>,
    mend: impl Into<String>,
) -> Check {
    Err(Fault { table, key, problem: problem.into(), mend: mend.into() })
}

/// The first fault of the file, in the order of its tables.
pub(super) fn check(keys: &CampaignKeys) -> Check {
    title(keys)?;
    trace(keys)?;
    slo(keys)?;
    load(keys)?;
    statistics(keys)?;
    thresholds(keys)?;
    arms(keys)?;
    backends(keys)?;
    agents(keys)
}

fn positive(table: &'static str, key: &'static str, value: f64) -> Check {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    fault((table, 0), key, format!("{value} is not a positive number"), "write a number above 0")
}

fn share(table: &'static str, key: &'static str, value: f64) -> Check {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    fault((table, 0), key, format!("{value} is not a share"), "write a number from 0 to 1")
}

/// Names become directories and columns of tables.
const MAX_NAME_CHARS: usize = 64;
/// They are sent one at a time: more would take longer than any campaign.
const MAX_BASELINE_REQUESTS: u64 = 10_000;
/// More bytes than this is a mistake of units, and would only fill memory.
const MAX_BYTES_PER_TOKEN: u64 = 1_024;
/// A day: nothing waits longer.
const MAX_SECONDS: f64 = 86_400.0;
/// Every one of them is hashed into the manifest before the first send.
const MAX_REPETITIONS: u32 = 1_000;
const SHA256_DIGITS: usize = 64;
/// Above it the schedule's own resolution is the limit.
const MAX_RATE_RPS: f64 = 1e6;

fn title(keys: &CampaignKeys) -> Check {
    let chars = keys.name.chars().count();
    if (1..=MAX_NAME_CHARS).contains(&chars) && !keys.name.trim().is_empty() {
        return Ok(());
    }
    let mend = format!("use 1 to {MAX_NAME_CHARS}");
    fault(("", 0), "name", format!("{chars} characters"), mend)
}

fn trace(keys: &CampaignKeys) -> Check {
    let bytes = keys.trace.bytes_per_token;
    if (1..=MAX_BYTES_PER_TOKEN).contains(&bytes) {
        return Ok(());
    }
    let mend = format!("use 1 to {MAX_BYTES_PER_TOKEN}; 4 is usual");
    fault(("trace", 0), "bytes_per_token", format!("{bytes} bytes a token"), mend)
}

fn seconds(table: &'static str, key: &'static str, value: f64) -> Check {
    positive(table, key, value)?;
    if value <= MAX_SECONDS {
        return Ok(());
    }
    fault((table, 0), key, format!("{value} s is more than a day"), "write seconds")
}

fn rate(table: &'static str, key: &'static str, value: f64) -> Check {
    positive(table, key, value)?;
    if value <= MAX_RATE_RPS {
        return Ok(());
    }
    let problem = format!("{value} requests per second");
    fault((table, 0), key, problem, format!("use at most {MAX_RATE_RPS}"))
}

fn slo(keys: &CampaignKeys) -> Check {
    let slo = &keys.slo;
    share("slo", "target", slo.target)?;
    if slo.target == 0.0 {
        let mend = "write a number above 0; 0.9 is usual";
        return fault(("slo", 0), "target", "every rate meets a target of 0", mend);
    }
    seconds("slo", "stall_s", slo.stall_s)?;
    if let Some(deadline) = slo.deadline_ms {
        positive("slo", "deadline_ms", deadline)?;
    }
    match (&slo.multiple_of_baseline, &slo.derived, &slo.fixed) {
        (None, Some(derived), None) => {
            let hex = derived.sha256.chars().all(|c| c.is_ascii_hexdigit());
            if hex && derived.sha256.len() == SHA256_DIGITS {
                return Ok(());
            }
            let mend = "copy the line that `goodput slo derive` printed";
            fault(("slo", 0), "derived", "sha256 is not 64 hexadecimal digits", mend)
        }
        (Some(multiple), None, None) => {
            positive("slo", "multiple_of_baseline", multiple.ttft_multiple)?;
            positive("slo", "multiple_of_baseline", multiple.tpot_multiple)?;
            if multiple.requests < 100 {
                let problem = format!("a baseline of {} requests", multiple.requests);
                return fault(("slo", 0), "multiple_of_baseline", problem, "use at least 100");
            }
            if multiple.requests > MAX_BASELINE_REQUESTS {
                let problem = format!("a baseline of {} requests", multiple.requests);
                let mend =
                    format!("use at most {MAX_BASELINE_REQUESTS}; they are sent one at a time");
                return fault(("slo", 0), "multiple_of_baseline", problem, mend);
            }
            Ok(())
        }
        (None, None, Some(fixed)) => {
            positive("slo", "fixed", fixed.ttft_ms)?;
            positive("slo", "fixed", fixed.tpot_ms)?;
            if fixed.origin.trim().is_empty() {
                let mend = "say where the two numbers come from, or measure them with `goodput slo derive`";
                let problem = "SLO_WITHOUT_ORIGIN: an SLO without an origin";
                return fault(("slo", 0), "fixed", problem, mend);
            }
            Ok(())
        }
        _ => fault(
            ("slo", 0),
            "multiple_of_baseline",
            "exactly one origin of the SLO is needed",
            "write one of multiple_of_baseline = { ttft_multiple, tpot_multiple }, derived = { file, sha256 } and fixed = { ttft_ms, tpot_ms, origin }",
        ),
    }
}

fn load(keys: &CampaignKeys) -> Check {
    let load = &keys.load;
    if load.rates_rps.is_empty() {
        return fault(("load", 0), "rates_rps", "no rate", "list at least one rate");
    }
    for rate in &load.rates_rps {
        self::rate("load", "rates_rps", *rate)?;
    }
    let texts: BTreeSet<String> = load.rates_rps.iter().map(f64::to_string).collect();
    if texts.len() != load.rates_rps.len() {
        return fault(("load", 0), "rates_rps", "a rate occurs twice", "list each rate once");
    }
    if load.repetitions == 0 || load.repetitions > load.max_repetitions {
        let problem = format!("{} repetitions, at most {}", load.repetitions, load.max_repetitions);
        let mend = "use 1 <= repetitions <= max_repetitions";
        return fault(("load", 0), "repetitions", problem, mend);
    }
    if load.max_repetitions > MAX_REPETITIONS {
        let problem = format!("{} repetitions", load.max_repetitions);
        let mend = format!("use at most {MAX_REPETITIONS}");
        return fault(("load", 0), "max_repetitions", problem, mend);
    }
    if keys.warmup.requests == 0 {
        return fault(("warmup", 0), "requests", "no warm-up", "use at least 1 request");
    }
    seconds("probe", "seconds", keys.probe.seconds)?;
    keys.probe.rate_rps.map_or(Ok(()), |value| rate("probe", "rate_rps", value))
}

fn statistics(keys: &CampaignKeys) -> Check {
    let statistics = &keys.statistics;
    let between = |key, value: f64, (low, high): (f64, f64), usual: &str| {
        if value > low && value < high {
            return Ok(());
        }
        let problem = format!("{value} is not strictly between {low} and {high}");
        fault(("statistics", 0), key, problem, format!("write for example {usual}"))
    };
    between("confidence", statistics.confidence, (0.5, 1.0), "0.95")?;
    between("alpha", statistics.alpha, (0.0, 0.5), "0.05")?;
    positive("statistics", "cv_bound", statistics.cv_bound)?;
    if statistics.cv_bound > 1.0 {
        let problem = format!("{} bounds nothing", statistics.cv_bound);
        return fault(("statistics", 0), "cv_bound", problem, "write a share; 0.10 is usual");
    }
    if let Some(delta) = statistics.delta {
        between("delta", delta, (0.0, 1.0), "0.02")?;
    }
    if statistics.min_baseline_reps < 2 {
        let problem = "a noise floor of fewer than 2 repetitions";
        return fault(("statistics", 0), "min_baseline_reps", problem, "use 3");
    }
    if statistics.comparison == Comparison::Paired && keys.arm.len() < 2 {
        let mend = "use comparison = \"welch\"";
        return fault(("statistics", 0), "comparison", "nothing to pair with", mend);
    }
    Ok(())
}

fn thresholds(keys: &CampaignKeys) -> Check {
    let thresholds = &keys.thresholds;
    positive("thresholds", "client_lag_p99_ms", thresholds.client_lag_p99_ms)?;
    share("thresholds", "achieved_share", thresholds.achieved_share)?;
    share("thresholds", "unpaired_share", thresholds.unpaired_share)?;
    share("thresholds", "workload_share", thresholds.workload_share)?;
    if thresholds.prefix_blocks == 0 {
        return fault(("thresholds", 0), "prefix_blocks", "0 blocks", "use at least 1");
    }
    Ok(())
}

fn arms(keys: &CampaignKeys) -> Check {
    let floors = keys.arm.iter().filter(|arm| arm.floor).count();
    if floors != 1 {
        let problem = format!("{floors} arms are the floor");
        return fault(("arm", 0), "floor", problem, "set floor = true on exactly one arm");
    }
    let mut names = BTreeSet::new();
    let mut vips = BTreeSet::new();
    for (nth, arm) in keys.arm.iter().enumerate() {
        if !names.insert(&arm.name) {
            let problem = format!("{:?} occurs twice", arm.name);
            return fault(("arm", nth), "name", problem, "give each arm its own name");
        }
        check_arm(nth, arm)?;
        if !vips.insert(address(&arm.vip)) {
            let problem =
                format!("{:?} is another arm's too: both would measure one gateway", arm.vip);
            return fault(("arm", nth), "vip", problem, "give each arm a VIP of its own");
        }
    }
    Ok(())
}

/// Host and port, so that spellings of one VIP are one.
fn address(url: &str) -> (Option<String>, Option<u16>) {
    let parsed = reqwest::Url::parse(url).ok();
    let host = parsed.as_ref().and_then(|url| Some(url.host()?.to_string()));
    (host, parsed.and_then(|url| url.port_or_known_default()))
}

fn check_arm(nth: usize, arm: &ArmKeys) -> Check {
    name(("arm", nth), &arm.name)?;
    url(("arm", nth), "vip", &arm.vip)?;
    for (key, value) in [("rest", &arm.rest), ("metrics", &arm.metrics)] {
        value.as_deref().map_or(Ok(()), |value| url(("arm", nth), key, value))?;
    }
    if arm.accelerators == 0 {
        return fault(("arm", nth), "accelerators", "0", "count the accelerators behind the arm");
    }
    for (key, value) in
        [("min_hit_share", arm.min_hit_share), ("max_miss_share", arm.max_miss_share)]
    {
        if value.is_some_and(|value| !(0.0..=1.0).contains(&value)) {
            let mend = "write a number from 0 to 1";
            return fault(("arm", nth), key, "not a share", mend);
        }
    }
    if !(0.0..=600.0).contains(&arm.metrics_settle_s) {
        let mend = "write seconds from 0 to 600";
        return fault(("arm", nth), "metrics_settle_s", "not a waiting time", mend);
    }
    if (arm.min_hit_share.is_some() || arm.max_miss_share.is_some()) && arm.metrics.is_none() {
        let problem = "a decision proof needs the gateway's counters";
        return fault(("arm", nth), "metrics", problem, "name the metrics URL of the gateway");
    }
    Ok(())
}

fn backends(keys: &CampaignKeys) -> Check {
    if keys.backend.is_empty() && keys.imported.is_none() {
        let mend = "list every inference server as a [[backend]]";
        return fault(("backend", 0), "address", "no backend", mend);
    }
    let mut seen = BTreeSet::new();
    for (nth, backend) in keys.backend.iter().enumerate() {
        if backend.address.parse::<std::net::SocketAddr>().is_err() {
            let problem = format!("{:?} is not address:port", backend.address);
            return fault(("backend", nth), "address", problem, "write for example 10.0.0.5:8000");
        }
        if !seen.insert(&backend.address) {
            let problem = format!("{:?} occurs twice", backend.address);
            return fault(("backend", nth), "address", problem, "list each backend once");
        }
        if !(backend.capacity_tokens_per_s.is_finite() && backend.capacity_tokens_per_s > 0.0) {
            let mend = "declare tokens per second";
            return fault(("backend", nth), "capacity_tokens_per_s", "not positive", mend);
        }
        if !["backend", "prefill", "decode"].contains(&backend.role.as_str()) {
            let problem = format!("{:?} is not a role", backend.role);
            return fault(("backend", nth), "role", problem, "use backend, prefill or decode");
        }
    }
    Ok(())
}

fn agents(keys: &CampaignKeys) -> Check {
    let mut names = BTreeSet::new();
    for (nth, agent) in keys.agent.iter().enumerate() {
        name(("agent", nth), &agent.name)?;
        url(("agent", nth), "url", &agent.url)?;
        if !names.insert(&agent.name) {
            let problem = format!("{:?} occurs twice", agent.name);
            return fault(("agent", nth), "name", problem, "give each agent its own name");
        }
        if !["gateway", "backend", "host"].contains(&agent.role.as_str()) {
            let problem = format!("{:?} is not a role", agent.role);
            return fault(("agent", nth), "role", problem, "use gateway, backend or host");
        }
    }
    Ok(())
}

fn name(table: (&'static str, usize), text: &str) -> Check {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let chars = text.chars().count();
    if chars > MAX_NAME_CHARS {
        let mend = format!("use at most {MAX_NAME_CHARS}");
        return fault(table, "name", format!("{chars} characters"), mend);
    }
    if !text.is_empty() && text.chars().all(allowed) {
        return Ok(());
    }
    fault(
        table,
        "name",
        format!("{text:?} cannot name a directory"),
        "use letters, digits, - and _",
    )
}

fn url(table: (&'static str, usize), key: &'static str, text: &str) -> Check {
    if text.starts_with("https://") {
        let mend = "use http:// to a listener inside the trusted network";
        return fault(table, key, "https is not supported yet", mend);
    }
    match reqwest::Url::parse(text) {
        Ok(parsed) if parsed.scheme() == "http" && parsed.host().is_some() => Ok(()),
        _ => fault(table, key, format!("{text:?} is not a URL"), "write http://address:port"),
    }
}
