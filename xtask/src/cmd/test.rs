//! `cargo xtask test`: the one gate, for developers and CI alike.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::process::{cargo, check, display};

/// Packages of Debian that the tests use: command, package.
const PACKAGES: [(&str, &str); 5] = [
    ("ip", "iproute2"),
    ("systemd-analyze", "systemd"),
    ("tcpdump", "tcpdump"),
    ("tmux", "tmux"),
    ("tshark", "tshark"),
];

/// Seed of the property tests in this gate: the same source gives the same result everywhere.
///
/// `PROPTEST_RNG_SEED` overrides it, so that other cases are searched where a failure stops nobody.
const PROPERTY_SEED: &str = "20250601";

/// Everything that must pass before a change lands; installs what it needs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only the steps whose name contains this.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

struct Step {
    name: &'static str,
    mend: &'static str,
    commands: Vec<Command>,
}

/// Runs every step in order and stops at the first that fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let privileged = is_root()?;
    set_up(privileged)?;
    let mut times = Vec::new();
    for mut step in steps(privileged) {
        if args.only.as_deref().is_some_and(|only| !step.name.contains(only)) {
            continue;
        }
        times.push((step.name, run_step(&mut step)?));
    }
    summarise(&times, privileged);
    Ok(ExitCode::SUCCESS)
}

fn run_step(step: &mut Step) -> anyhow::Result<Duration> {
    let start = Instant::now();
    for command in &mut step.commands {
        eprintln!("== {}: {}", step.name, display(command));
        check(command).with_context(|| format!("step `{}`; mend: {}", step.name, step.mend))?;
    }
    Ok(start.elapsed())
}

fn steps(privileged: bool) -> Vec<Step> {
    let step = |name, mend, commands| Step { name, mend, commands };
    let mut docs = cargo(["doc", "--workspace", "--no-deps", "--document-private-items"]);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    vec![
        step("format", "cargo fmt --all", vec![cargo(["fmt", "--all", "--check"])]),
        step("ebpf object", "cargo xtask ebpf", vec![cargo(["xtask", "ebpf", "--check"])]),
        step("clippy", "mend what clippy names", vec![clippy()]),
        step("docs", "mend what rustdoc names", vec![docs]),
        step("tests", "cargo test --workspace --exclude e2e", vec![tests(privileged)]),
        step("end to end", "cargo test -p e2e", vec![end_to_end(privileged)]),
    ]
}

fn clippy() -> Command {
    cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

fn tests(privileged: bool) -> Command {
    required(cargo(["test", "--workspace", "--exclude", "e2e"]), privileged)
}

fn end_to_end(privileged: bool) -> Command {
    required(cargo(["test", "--package", "e2e", "--", "--test-threads=1"]), privileged)
}

/// As root nothing that needs the kernel may be skipped: a missing feature is then a failure.
fn required(mut command: Command, privileged: bool) -> Command {
    if privileged {
        command.env("GOODPUT_REQUIRE_KERNEL", "1");
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        command.env("PROPTEST_RNG_SEED", PROPERTY_SEED);
    }
    command
}

fn is_root() -> anyhow::Result<bool> {
    let out = Command::new("id").arg("-u").output().context("cannot run `id -u`")?;
    Ok(out.stdout.trim_ascii() == b"0")
}

fn set_up(privileged: bool) -> anyhow::Result<()> {
    for component in ["clippy", "fmt"] {
        if !succeeds(cargo([component, "--version"])) {
            check(Command::new("rustup").args(["component", "add", "clippy", "rustfmt"]))?;
        }
    }
    if privileged {
        return crate::packages::ensure(&PACKAGES);
    }
    let missing = crate::packages::missing(&PACKAGES);
    if !missing.is_empty() {
        eprintln!("missing: {0}; mend: sudo apt-get install {0}", missing.join(" "));
    }
    Ok(())
}

fn succeeds(mut command: Command) -> bool {
    command.output().is_ok_and(|out| out.status.success())
}

fn summarise(times: &[(&str, Duration)], privileged: bool) {
    for (name, time) in times {
        eprintln!("{name:>12}  passed  {:7.1} s", time.as_secs_f64());
    }
    if !privileged {
        eprintln!("SKIPPED: every test that attaches kernel programs or makes network namespaces.");
        eprintln!("To run them: sudo -E env PATH=\"$PATH\" cargo xtask test");
    }
}
