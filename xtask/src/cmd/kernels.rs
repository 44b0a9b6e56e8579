//! `cargo xtask kernels`: the agent's self-test under other kernels, in QEMU without KVM.

use std::process::ExitCode;

use crate::guest::{self, Verdict};
use crate::static_build;

/// The agent's self-test under Debian's kernels, in software emulation.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Kernel series, separated by commas: Debian's newest package of each is booted.
    #[arg(long, default_value = "6.1,6.12", value_delimiter = ',')]
    kernel: Vec<String>,
    /// Sources to prove, separated by commas; `auto` is what the agent chooses.
    #[arg(long, default_value = "auto", value_delimiter = ',')]
    source: Vec<String>,
}

/// Boots each kernel; exit code 1 when an answer is not right.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    static_build::build(&["agent"])?;
    let agent = static_build::distribute()?.path;
    let mut right = true;
    for series in &args.kernel {
        let image = guest::image(series)?;
        for source in &args.source {
            let verdict = guest::boot(&image, &agent, source)?;
            print(series, source, &verdict);
            right &= verdict.faults.is_empty();
        }
    }
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(series: &str, asked: &str, verdict: &Verdict) {
    let Verdict { kernel, source, checks, programs, seconds, faults } = verdict;
    let word = if faults.is_empty() { "right" } else { "WRONG" };
    println!(
        "{series} ({kernel}), source {asked} -> {source}: {word}, {checks} checks, {seconds:.0} s"
    );
    for (kind, instructions) in programs {
        println!("    {kind}: {instructions} instructions verified");
    }
    faults.iter().for_each(|fault| println!("    {fault}"));
}
