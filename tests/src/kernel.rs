//! What this host's kernel allows, and what is attached to it.

use std::collections::BTreeSet;
use std::fs;

use anyhow::Context as _;
use aya::programs::{SchedClassifier, TcAttachType};

/// Leaves a test early, loudly, where this host cannot attach the kernel programs; with
/// `GOODPUT_REQUIRE_KERNEL=1` that is a failure instead.
#[macro_export]
macro_rules! require_kernel {
    () => {
        if !$crate::kernel::available(module_path!())? {
            return Ok(());
        }
    };
}

/// Whether the kernel programs can be attached here.
///
/// # Errors
/// When they cannot, and `GOODPUT_REQUIRE_KERNEL=1` says that they must.
pub fn available(test: &str) -> anyhow::Result<bool> {
    let missing = agent::capture::tcx::preflight();
    for one in &missing {
        eprintln!("SKIPPED {test}: {} is missing; {}", one.what, one.mend);
    }
    let required = std::env::var("GOODPUT_REQUIRE_KERNEL").is_ok_and(|value| value == "1");
    anyhow::ensure!(
        missing.is_empty() || !required,
        "GOODPUT_REQUIRE_KERNEL=1, but this host cannot attach the kernel programs"
    );
    Ok(missing.is_empty())
}

/// Ids of the programs that the links of process `pid` hold, from what the kernel says about its
/// file descriptors. Other tests' programs on the same interface do not count.
///
/// # Errors
/// When the process is gone.
pub fn programs_held_by(pid: u32) -> anyhow::Result<BTreeSet<u32>> {
    let folder = format!("/proc/{pid}/fdinfo");
    let mut ids = BTreeSet::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.clone())? {
        // A descriptor may be closed while the list is read.
        let text = fs::read_to_string(entry?.path()).unwrap_or_default();
        if text.contains("link_type:\ttcx") {
            ids.extend(
                text.lines()
                    .filter_map(|line| line.strip_prefix("prog_id:"))
                    .filter_map(|id| id.trim().parse::<u32>().ok()),
            );
        }
    }
    Ok(ids)
}

/// Ids of the programs attached to `interface` by TCX, both directions.
///
/// # Errors
/// When the kernel refuses the query.
pub fn programs_on(interface: &str) -> anyhow::Result<BTreeSet<u32>> {
    let mut ids = BTreeSet::new();
    for direction in [TcAttachType::Ingress, TcAttachType::Egress] {
        ids.extend(query(interface, direction)?);
    }
    Ok(ids)
}

/// A query makes two calls, between which another test's program may vanish: it is then repeated.
fn query(interface: &str, direction: TcAttachType) -> anyhow::Result<Vec<u32>> {
    const ATTEMPTS: usize = 100;
    for _ in 1..ATTEMPTS {
        if let Ok((_, programs)) = SchedClassifier::query_tcx(interface, direction) {
            return Ok(programs.iter().map(aya::programs::ProgramInfo::id).collect());
        }
    }
    let (_, programs) = SchedClassifier::query_tcx(interface, direction)
        .with_context(|| format!("BPF_PROG_QUERY on {interface}"))?;
    Ok(programs.iter().map(aya::programs::ProgramInfo::id).collect())
}
