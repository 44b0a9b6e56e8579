//! `agent/bpf/goodput-agent.bpf.json`: what the committed object was built from.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::MEND;
use crate::process::root;

/// The record beside the object.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// See [`hash_sources`].
    pub(crate) sources_sha256: String,
    /// Hash of the object itself.
    pub(crate) object_sha256: String,
    /// Versions of the tools, by name.
    pub(crate) tools: BTreeMap<String, String>,
}

fn path() -> PathBuf {
    root().join("agent/bpf/goodput-agent.bpf.json")
}

impl Record {
    /// Describes an object that was just built from the present sources.
    pub(crate) fn new(object: &[u8], tools: BTreeMap<String, String>) -> anyhow::Result<Self> {
        Ok(Self { sources_sha256: hash_sources()?, object_sha256: hash(object), tools })
    }

    /// Reads the committed record.
    pub(crate) fn read() -> anyhow::Result<Self> {
        let path = path();
        let text = fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}; {MEND}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{}; {MEND}", path.display()))
    }

    /// Writes it beside the object.
    pub(crate) fn write(&self) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path(), text).context("cannot write the record")
    }
}

/// SHA-256 in hexadecimal.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hash over everything that decides the object's instructions: the files of `agent-ebpf/`, and the
/// versions and checksums of the crates it is linked with.
pub(crate) fn hash_sources() -> anyhow::Result<String> {
    let mut files = Vec::new();
    collect(&root().join("agent-ebpf"), &mut files)?;
    files.sort();
    let mut hasher = Sha256::new();
    for file in files {
        let name = file.strip_prefix(root())?.to_string_lossy().into_owned();
        let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        hasher.update(format!("{name} {}\n", hash(&bytes)));
    }
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("cannot read Cargo.lock")?;
    for line in locked_crates(&lock)? {
        hasher.update(line + "\n");
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    #[serde(default)]
    checksum: String,
}

/// The crates that run in the kernel, as `Cargo.lock` pins them.
fn locked_crates(lock: &str) -> anyhow::Result<Vec<String>> {
    let lock: Lock = toml::from_str(lock).context("Cargo.lock")?;
    let in_kernel = |name: &str| {
        name.starts_with("aya-ebpf") || name.starts_with("aya-log-ebpf") || name == "aya-log-common"
    };
    let packages = lock.package.into_iter().filter(|it| in_kernel(&it.name));
    let mut lines: Vec<_> =
        packages.map(|it| format!("{} {} {}", it.name, it.version, it.checksum)).collect();
    lines.sort();
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_crates_that_run_in_the_kernel_count() {
        let lock = "version = 4\n\
            [[package]]\nname = \"aya-ebpf\"\nversion = \"0.2.1\"\nchecksum = \"ab\"\n\
            [[package]]\nname = \"agent\"\nversion = \"0.1.0\"\n\
            [[package]]\nname = \"aya\"\nversion = \"0.14.0\"\nchecksum = \"cd\"\n";
        assert_eq!(locked_crates(lock).unwrap(), ["aya-ebpf 0.2.1 ab"]);
    }

    #[test]
    fn the_hash_is_the_published_one_of_sha_256() {
        // FIPS 180-4 example: one block of "abc".
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash(b"abc"), expected);
    }
}
