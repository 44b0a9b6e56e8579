//! Debian's security suite ships a Rust with `core` built for BPF, and the LLVM that it was built
//! with. The packages are unpacked into a private folder: nothing is installed on the system.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::process::{check, root};

const PACKAGES: [&str; 8] = [
    "rustc-web",
    "cargo-web",
    "libstd-rust-web-dev",
    "libstd-rust-web-dev-bpf",
    "llvm-22",
    "llvm-22-dev",
    "libllvm22",
    "libpolly-22-dev",
];
/// bpf-linker's version and the LLVM feature that matches the compiler's LLVM.
const LINKER_VERSION: &str = "0.13.0";
const LINKER_FEATURE: &str = "llvm-22";

fn folder() -> PathBuf {
    root().join("target/ebpf-toolchain")
}

/// Lets programs below `usr` find their libraries, and stable builds use what the kernel programs
/// need of nightly.
pub(crate) fn environment(command: &mut Command, usr: &Path) {
    let libraries = usr.join("lib/x86_64-linux-gnu");
    command
        .env("LD_LIBRARY_PATH", &libraries)
        .env("LIBRARY_PATH", &libraries)
        .env("LLVM_PREFIX", usr.join("lib/llvm-22"))
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO");
}

/// The packages and what they need that the system lacks.
fn wanted() -> anyhow::Result<BTreeSet<String>> {
    let simulate = ["install", "--simulate", "--no-install-recommends"];
    let out = Command::new("apt-get").args(simulate).args(PACKAGES).output()?;
    if !out.status.success() {
        bail!("{}", String::from_utf8_lossy(&out.stderr).trim());
    }
    let text = String::from_utf8_lossy(&out.stdout);
    let needed = text.lines().filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next());
    Ok(needed.chain(PACKAGES).map(str::to_owned).collect())
}

/// Downloads and unpacks the packages unless that was done before; returns the `usr` folder.
pub(crate) fn unpack() -> anyhow::Result<PathBuf> {
    let usr = folder().join("root/usr");
    let done = folder().join("unpacked");
    if done.exists() {
        return Ok(usr);
    }
    let packages = wanted().or_else(|_| {
        check(Command::new("apt-get").args(["update", "-q"]))?;
        wanted()
    });
    let packages = packages.context(
        "this system's packages hold no Rust for BPF; mend: rustup toolchain install nightly \
         --component rust-src && cargo install bpf-linker",
    )?;
    let archives = folder().join("packages");
    fs::create_dir_all(&archives)?;
    check(Command::new("apt-get").args(["download", "-q"]).args(&packages).current_dir(&archives))?;
    for entry in fs::read_dir(&archives)? {
        let archive = entry?.path();
        check(Command::new("dpkg").arg("-x").arg(&archive).arg(folder().join("root")))?;
    }
    // The archives are as large as half of what they hold.
    fs::remove_dir_all(&archives)?;
    fs::write(done, packages.into_iter().collect::<Vec<_>>().join("\n"))?;
    Ok(usr)
}

/// Builds bpf-linker against the unpacked LLVM unless that was done before.
pub(crate) fn linker(usr: &Path) -> anyhow::Result<PathBuf> {
    let linker = folder().join("linker/bin/bpf-linker");
    if linker.exists() {
        return Ok(linker);
    }
    let mut cargo = Command::new(usr.join("bin/cargo"));
    environment(&mut cargo, usr);
    cargo
        .env("RUSTC", usr.join("bin/rustc"))
        .args(["install", "bpf-linker", "--version", LINKER_VERSION, "--locked"])
        .args(["--no-default-features", "--features", LINKER_FEATURE])
        .arg("--root")
        .arg(folder().join("linker"))
        .arg("--target-dir")
        .arg(folder().join("linker-build"))
        .current_dir(folder());
    check(&mut cargo)?;
    fs::remove_dir_all(folder().join("linker-build"))?;
    Ok(linker)
}
