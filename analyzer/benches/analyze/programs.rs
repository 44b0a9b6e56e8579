//! `goodput analyze` and `goodput verify` as a user starts them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;

/// What the two commands took.
pub(crate) struct Costs {
    pub(crate) analyze: Duration,
    pub(crate) verify: Duration,
    /// CPU time of both commands and the second computation they start.
    pub(crate) cpu: Duration,
    /// Largest resident set of any of the processes, KiB.
    pub(crate) peak_rss_kib: u64,
    pub(crate) verdict: String,
}

/// Runs both on `run_dir`.
pub(crate) fn measure(run_dir: &Path) -> anyhow::Result<Costs> {
    let before = children_cpu()?;
    let (analyze, _) = timed("analyze", run_dir)?;
    let (verify, out) = timed("verify", run_dir)?;
    let verdict: Value = serde_json::from_slice(&out)?;
    Ok(Costs {
        analyze,
        verify,
        cpu: children_cpu()?.saturating_sub(before),
        peak_rss_kib: u64::try_from(getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss())?,
        verdict: verdict["verdict"].as_str().context("verdict.json has no verdict")?.to_owned(),
    })
}

fn timed(command: &str, run_dir: &Path) -> anyhow::Result<(Duration, Vec<u8>)> {
    let start = Instant::now();
    let out = Command::new(env!("CARGO_BIN_EXE_goodput"))
        .args([command, "--json"])
        .arg(run_dir)
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(matches!(out.status.code(), Some(0 | 1)), "goodput {command}: {}", out.status);
    Ok((start.elapsed(), out.stdout))
}

fn children_cpu() -> anyhow::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let of = |time: nix::sys::time::TimeVal| {
        let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    };
    Ok(of(usage.user_time()) + of(usage.system_time()))
}
