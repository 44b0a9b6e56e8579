//! `cargo xtask ebpf`: the object of the kernel programs.

use std::process::ExitCode;

use crate::ebpf;

/// Rebuild or check the object of the kernel programs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Compare the hash of the sources with the one the committed object was built from.
    #[arg(long)]
    pub(crate) check: bool,
    /// With --check: rebuild and compare instructions and maps.
    #[arg(long, requires = "check")]
    pub(crate) rebuild: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.check {
        ebpf::check_sources()?;
        if args.rebuild {
            ebpf::check_rebuild()?;
        }
    } else {
        ebpf::rebuild()?;
    }
    Ok(ExitCode::SUCCESS)
}
