//! `cargo xtask fuzz`: every decoder under libFuzzer, on the stable toolchain.
//!
//! The coverage counters are a pass of LLVM that a stable compiler runs too (`-Cpasses=sancov-module`); only
//! the address sanitizer would need nightly, and the crates forbid unsafe code but for system calls.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail};

use crate::packages;
use crate::process::{cargo, check, root};

/// The flags with which cargo-fuzz, too, asks LLVM for coverage.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";
/// With an explicit target, build scripts and macros stay without counters.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
/// Seconds after which one input counts as a hang.
const HANG_S: u32 = 10;

/// Try the decoders with damaged inputs.
///
/// Examples: `cargo xtask fuzz` (every target for 60 s), `cargo xtask fuzz sse --for 10m`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One target; all when absent. `--list` prints their names.
    target: Option<String>,
    /// How long each target runs, such as 60s, 10m or 2h.
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = seconds)]
    time: u64,
    /// Print the targets and end.
    #[arg(long)]
    list: bool,
}

fn seconds(text: &str) -> Result<u64, String> {
    let (number, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
    let factor = match unit {
        "s" | "" => Some(1),
        "m" => Some(60),
        "h" => Some(3_600),
        _ => None,
    };
    let seconds = number.parse::<u64>().ok().zip(factor).and_then(|(n, f)| n.checked_mul(f));
    seconds.filter(|s| *s > 0).ok_or_else(|| format!("{text}: write 60s, 10m or 2h"))
}

/// Builds once and runs the targets one after the other; exit code 1 when one of them failed.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    packages::ensure(&[("c++", "g++")])?;
    let folder = root().join("target/fuzz");
    let targets = write_seeds(&folder.join("seeds"))?;
    if args.list {
        println!("{}", targets.join("\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let wanted = |name: &&String| args.target.as_ref().is_none_or(|target| target == *name);
    let chosen: Vec<_> = targets.iter().filter(wanted).collect();
    if chosen.is_empty() {
        bail!("no such target; mend: one of {}", targets.join(", "));
    }
    let engine = build(&folder)?;
    let mut failed = Vec::new();
    for name in chosen {
        let report = fuzz(&engine, &folder, name, args.time)?;
        println!("{name:>14}  {report}");
        if report.failed {
            failed.push(name.as_str());
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("failed: {}; the inputs are in target/fuzz/crashes", failed.join(", "));
    eprintln!("mend: fix the decoder and keep the input in fuzz/corpus/<target>");
    Ok(ExitCode::FAILURE)
}

/// Writes every target's seeds and gives the names.
fn write_seeds(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut command = cargo(["run", "--quiet", "--package", "fuzz", "--bin", "fuzz-seeds", "--"]);
    let out = command.arg(folder).stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    if !out.status.success() {
        bail!("the seeds could not be written; mend what cargo says above");
    }
    Ok(String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect())
}

/// Assertions and overflow checks stay on: they are what a target finds faults with.
fn build(folder: &Path) -> anyhow::Result<PathBuf> {
    let mut command = cargo(["build", "--release", "--package", "fuzz", "--features", "libfuzzer"]);
    command.args(["--bin", "fuzz-engine", "--target", TRIPLE]);
    command.env("RUSTFLAGS", COVERAGE).env("CARGO_TARGET_DIR", folder);
    for (key, value) in [
        ("OPT_LEVEL", "1"),
        ("DEBUG", "0"),
        ("DEBUG_ASSERTIONS", "true"),
        ("OVERFLOW_CHECKS", "true"),
    ] {
        command.env(format!("CARGO_PROFILE_RELEASE_{key}"), value);
    }
    check(&mut command)?;
    Ok(folder.join(TRIPLE).join("release/fuzz-engine"))
}

/// What a run came to.
struct Report {
    executions: String,
    coverage: String,
    failed: bool,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = if self.failed { "FAILED" } else { "passed" };
        write!(f, "{verdict}  {} executions, {} edges", self.executions, self.coverage)
    }
}

fn fuzz(engine: &Path, folder: &Path, name: &str, seconds: u64) -> anyhow::Result<Report> {
    let (found, crashes) = (folder.join("corpus").join(name), folder.join("crashes"));
    for made in [&found, &crashes] {
        std::fs::create_dir_all(made).with_context(|| made.display().to_string())?;
    }
    let log = folder.join(format!("{name}.log"));
    let mut command = Command::new(engine);
    command.env("GOODPUT_FUZZ_TARGET", name).current_dir(folder);
    command.arg(&found).arg(folder.join("seeds").join(name));
    let kept = root().join("fuzz/corpus").join(name);
    command.args(kept.is_dir().then_some(kept));
    command.arg(format!("-max_total_time={seconds}")).arg(format!("-timeout={HANG_S}"));
    command.args(["-print_final_stats=1", "-rss_limit_mb=1024", "-max_len=16384"]);
    command.arg(format!("-artifact_prefix={}/{name}-", crashes.display()));
    let file = std::fs::File::create(&log).with_context(|| log.display().to_string())?;
    let status = command.stdout(Stdio::null()).stderr(file).status().context("fuzz-engine")?;
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    if !status.success() {
        eprintln!("{}", tail(&text));
    }
    Ok(Report {
        executions: after(&text, "stat::number_of_executed_units:").to_owned(),
        coverage: after(&text, " cov: ").to_owned(),
        failed: !status.success(),
    })
}

/// The word behind the last `key`.
fn after<'a>(text: &'a str, key: &str) -> &'a str {
    let rest = text.rsplit_once(key).map_or("", |(_, rest)| rest);
    rest.split_whitespace().next().unwrap_or("unknown")
}

fn tail(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::{after, seconds};

    #[test]
    fn times_are_read_with_their_unit() {
        assert_eq!(seconds("60s"), Ok(60));
        assert_eq!(seconds("10m"), Ok(600));
        assert_eq!(seconds("2h"), Ok(7_200));
        for bad in ["", "0s", "m", "5d", "-1s", "99999999999999999999h"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn figures_are_the_last_ones_of_the_log() {
        let log =
            "#2 INITED cov: 10 ft: 3\n#9 DONE cov: 12 ft: 4\nstat::number_of_executed_units: 9\n";
        assert_eq!(after(log, " cov: "), "12");
        assert_eq!(after(log, "stat::number_of_executed_units:"), "9");
        assert_eq!(after("", " cov: "), "unknown");
    }
}
