//! From sources to the object.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use super::toolchain::{Kind, Toolchain};
use crate::process::{check, root};

const TARGET: &str = "bpfel-unknown-none";

/// Where cargo keeps sources of the registry: one folder per registry, named after its host.
fn registry_folders() -> Vec<PathBuf> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let Some(sources) = home.map(|home| home.join("registry/src")) else { return Vec::new() };
    let Ok(entries) = fs::read_dir(sources) else { return Vec::new() };
    let mut folders: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.sort();
    folders
}

/// Compiler flags. `bpf_target_arch` only chooses register names that the programs do not use, and
/// is fixed so that every host builds the same object; paths are cut to what is the same everywhere.
fn flags(registries: &[PathBuf]) -> String {
    let mut flags: Vec<String> =
        ["--cfg=bpf_target_arch=\"x86_64\"", "-Cdebuginfo=2", "-Clink-arg=--btf"]
            .map(str::to_owned)
            .to_vec();
    flags.push(format!("--remap-path-prefix={}/=", root().display()));
    flags.push(format!("--remap-path-prefix={}=.", root().display()));
    let crates = registries.iter().map(|it| format!("--remap-path-prefix={}=crates", it.display()));
    flags.extend(crates);
    // The separator of CARGO_ENCODED_RUSTFLAGS: paths may hold blanks.
    flags.join("\u{1f}")
}

/// Builds the object below `target/` and returns it without debug sections.
pub(crate) fn object(toolchain: &Toolchain) -> anyhow::Result<Vec<u8>> {
    let folder = root().join("target/ebpf-object");
    // First, so that the registry's folder exists when its path is cut.
    check(toolchain.command("cargo").args(["fetch", "--locked", "--quiet"]).current_dir(root()))?;
    let mut cargo = toolchain.command("cargo");
    cargo
        .current_dir(root())
        .env("CARGO_ENCODED_RUSTFLAGS", flags(&registry_folders()))
        .env("CARGO_TARGET_BPFEL_UNKNOWN_NONE_LINKER", &toolchain.linker)
        .args(["build", "--release", "--locked", "--package", "agent-ebpf"])
        .args(["--bin", "goodput-agent-ebpf", "--features", "ebpf", "--target", TARGET])
        .arg("--target-dir")
        .arg(&folder);
    if matches!(toolchain.kind, Kind::Nightly) {
        cargo.args(["-Z", "build-std=core"]);
    }
    check(&mut cargo)?;
    let built = folder.join(TARGET).join("release/goodput-agent-ebpf");
    let stripped = folder.join("goodput-agent.bpf.o");
    fs::copy(&built, &stripped).context("the build left no object")?;
    strip(toolchain, &stripped);
    fs::read(&stripped).context("cannot read the object")
}

/// Takes DWARF out and leaves BTF in. Without a tool for it the object is larger, and as good.
fn strip(toolchain: &Toolchain, object: &PathBuf) {
    let objcopy = match &toolchain.kind {
        Kind::Nightly => PathBuf::from("llvm-objcopy"),
        Kind::Debian(usr) => usr.join("lib/llvm-22/bin/llvm-objcopy"),
    };
    let mut command = Command::new(objcopy);
    if let Kind::Debian(usr) = &toolchain.kind {
        super::debian::environment(&mut command, usr);
    }
    if let Err(error) = check(command.arg("--strip-debug").arg(object)) {
        eprintln!("note: debug sections stay in the object: {error:#}");
    }
}
