//! Building, recording and checking the object of the kernel programs.

mod build;
mod compare;
mod debian;
mod record;
mod toolchain;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};

use crate::process::root;
use record::Record;

const MEND: &str = "run `cargo xtask ebpf` and commit agent/bpf/";

fn object_path() -> PathBuf {
    root().join("agent/bpf/goodput-agent.bpf.o")
}

fn read_object() -> anyhow::Result<Vec<u8>> {
    let path = object_path();
    fs::read(&path).with_context(|| format!("cannot read {}; {MEND}", path.display()))
}

/// Sets up the toolchain, builds, and replaces the committed object and its record.
pub(crate) fn rebuild() -> anyhow::Result<()> {
    let toolchain = toolchain::set_up()?;
    let object = build::object(&toolchain)?;
    let record = Record::new(&object, toolchain.versions()?)?;
    fs::write(object_path(), &object).context("cannot write the object")?;
    record.write()?;
    println!(
        "agent/bpf/goodput-agent.bpf.o: {} bytes, sha256 {}",
        object.len(),
        record.object_sha256
    );
    Ok(())
}

/// Compares the committed object with its record, and the record with the sources. Needs no
/// toolchain.
pub(crate) fn check_sources() -> anyhow::Result<()> {
    let record = Record::read()?;
    let sources = record::hash_sources()?;
    if record.sources_sha256 != sources {
        bail!("the kernel object is older than its sources; {MEND}");
    }
    if record.object_sha256 != record::hash(&read_object()?) {
        bail!("the kernel object is not the one that its record describes; {MEND}");
    }
    println!("kernel object: built from the present sources ({sources})");
    Ok(())
}

/// Builds again, beside the committed object, and compares what the kernel would run.
pub(crate) fn check_rebuild() -> anyhow::Result<()> {
    let toolchain = toolchain::set_up()?;
    let built = build::object(&toolchain)?;
    let differences = compare::differences(&read_object()?, &built)?;
    if differences.is_empty() {
        println!("kernel object: a rebuild has the same instructions, maps and constants");
        return Ok(());
    }
    let recorded = Record::read()?.tools;
    let used = toolchain.versions()?;
    let why = if recorded == used {
        String::new()
    } else {
        format!(" (recorded tools {recorded:?}, used {used:?})")
    };
    bail!("a rebuild differs in {}{why}; {MEND}", differences.join(", "))
}
