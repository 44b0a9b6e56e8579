//! A small campaign of two arms on a fleet with free ports.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::agent::{Api, Watch};
use crate::binaries::binary;
use crate::fleet::Fleet;
use crate::process::{Finished, Process};
use crate::trace::Trace;

/// Far above what the campaign takes.
const LIMIT: Duration = Duration::from_secs(90);

/// The keys before the arms: 40 requests a cell, one rate, two repetitions.
const HEAD: &str = r#"
name = "small"
seed = 7
run_dir = "run"
[trace]
path = "trace.jsonl"
length_divisor = 8
[request]
model = "sim-model"
length_control = "ignore_eos"
[slo]
fixed = { ttft_ms = 400.0, tpot_ms = 40.0, origin = "a test's own" }
[load]
rates_rps = [40]
arrivals = "constant"
repetitions = 2
[warmup]
requests = 4
[probe]
seconds = 1.0
"#;

/// A fleet for the campaign; `cache_aware` holds more keys of that gateway's policy.
///
/// # Errors
/// When the fleet does not start.
pub fn fleet(cache_aware: &str) -> anyhow::Result<Fleet> {
    Fleet::start(&format!(
        "[engine]\nprefill_tokens_per_s = 25000\ndecode_interval_us = 1500\n\
         [[backend]]\nname = 'b0'\n[[backend]]\nname = 'b1'\n\
         [[gateway]]\nname = 'floor'\npolicy = {{ algorithm = 'round_robin' }}\n\
         [[gateway]]\nname = 'aware'\n[gateway.policy]\nalgorithm = 'cache_aware'\n{cache_aware}\n"
    ))
}

/// Everything of `fleet`, on `lo`.
///
/// # Errors
/// When the fleet lacks a gateway.
pub fn watch(fleet: &Fleet) -> anyhow::Result<Watch<'static>> {
    Ok(Watch {
        interfaces: vec!["lo"],
        api: "127.0.0.1:0",
        vips: vec![fleet.vip("floor")?, fleet.vip("aware")?],
        backends: fleet.backends()?.into_iter().map(|(_, address)| address).collect(),
    })
}

/// Starts the campaign in `folder`; its run directory is `folder/run`.
///
/// # Errors
/// When it cannot be started.
pub fn start(folder: &Path, fleet: &Fleet, agent: Option<&Api>) -> anyhow::Result<Process> {
    start_file(folder, &file(fleet, agent)?)
}

/// Runs it with five repetitions, which may be published, and bounds that a busy host keeps.
///
/// # Errors
/// When it cannot be started, or does not end.
pub fn run_publishable(folder: &Path, fleet: &Fleet, agent: &Api) -> anyhow::Result<Finished> {
    let text = file(fleet, Some(agent))?
        .replace("repetitions = 2", "repetitions = 5\nreplace_invalid = 3")
        .replace("ttft_ms = 400.0, tpot_ms = 40.0", "ttft_ms = 9000.0, tpot_ms = 400.0");
    let lag = "[thresholds]\nclient_lag_p99_ms = 90.0\n";
    start_file(folder, &(text + lag))?.wait(2 * LIMIT)
}

fn start_file(folder: &Path, text: &str) -> anyhow::Result<Process> {
    let trace = Trace { rows: 40, groups: 4, blocks: 3, output_tokens: 6 }.text();
    fs::write(folder.join("trace.jsonl"), trace)?;
    fs::write(folder.join("campaign.toml"), text)?;
    let mut command = Command::new(binary("goodput")?);
    command.args(["run", "campaign.toml"]).current_dir(folder);
    Process::spawn(command)
}

/// Runs the campaign to its end.
///
/// # Errors
/// When it cannot be started, or does not end.
pub fn run(folder: &Path, fleet: &Fleet, agent: Option<&Api>) -> anyhow::Result<Finished> {
    start(folder, fleet, agent)?.wait(LIMIT)
}

fn file(fleet: &Fleet, agent: Option<&Api>) -> anyhow::Result<String> {
    let mut text = HEAD.to_owned();
    let floor = "floor = true\nexpected = { sel = 0, mode = 4, kvExactMode = 0 }";
    let aware = "min_hit_share = 0.5\nmax_miss_share = 0.6\n\
                 expected = { sel = 4, mode = 4, kvExactMode = 3, lb_mode = \"hard\" }";
    for (name, keys) in [("floor", floor), ("aware", aware)] {
        let (vip, rest) = (fleet.vip(name)?, fleet.rest(name)?);
        let rest = format!("http://{rest}/netlox/v1");
        writeln!(text, "[[arm]]\nname = {name:?}\nvip = \"http://{vip}\"\n{keys}")?;
        writeln!(text, "rest = {rest:?}\nmetrics = \"{rest}/metrics\"\nlog = \"{rest}/logs\"")?;
        writeln!(text, "accelerators = 2\nmetrics_settle_s = 0.0")?;
    }
    for (_, address) in fleet.backends()? {
        writeln!(text, "[[backend]]\naddress = \"{address}\"\ncapacity_tokens_per_s = 25000.0")?;
    }
    if let Some(api) = agent {
        writeln!(text, "[[agent]]\nname = \"e2e\"\nurl = {:?}\nrole = \"host\"", api.url())?;
    }
    Ok(text)
}
