//! A compiler with `core` for BPF, and the linker that goes with its LLVM.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::debian;

/// A compiler and linker for `bpfel-unknown-none`.
pub(crate) struct Toolchain {
    pub(crate) kind: Kind,
    pub(crate) linker: PathBuf,
}

/// Where the compiler comes from.
pub(crate) enum Kind {
    /// rustup's nightly with the component rust-src: `core` is built from source.
    Nightly,
    /// Debian packages unpacked below this folder: `core` comes built.
    Debian(PathBuf),
}

impl Toolchain {
    /// A command of the toolchain, `rustc` or `cargo`. Debian's are called directly: rustup's
    /// would follow the workspace's `rust-toolchain.toml`.
    pub(crate) fn command(&self, name: &str) -> Command {
        match &self.kind {
            Kind::Nightly => {
                let mut command = Command::new("rustup");
                command.args(["run", "nightly", name]);
                command
            }
            Kind::Debian(usr) => {
                let mut command = Command::new(usr.join("bin").join(name));
                command.env("RUSTC", usr.join("bin/rustc"));
                debian::environment(&mut command, usr);
                command
            }
        }
    }

    fn linker_command(&self) -> Command {
        let mut command = Command::new(&self.linker);
        if let Kind::Debian(usr) = &self.kind {
            debian::environment(&mut command, usr);
        }
        command
    }

    /// Versions of what turns sources into instructions.
    pub(crate) fn versions(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let mut rustc = self.command("rustc");
        let mut linker = self.linker_command();
        Ok(BTreeMap::from([
            ("rustc".to_owned(), first_line(rustc.arg("--version"))?),
            ("bpf-linker".to_owned(), first_line(linker.arg("--version"))?),
        ]))
    }
}

fn first_line(command: &mut Command) -> anyhow::Result<String> {
    let out = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !out.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&out.stderr));
    }
    let text = String::from_utf8_lossy(&out.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// `rustup run nightly`, if it has the sources of `core` and a linker is installed.
fn nightly() -> Option<Toolchain> {
    let mut command = Command::new("rustup");
    let sysroot =
        first_line(command.args(["run", "nightly", "rustc", "--print", "sysroot"])).ok()?;
    let sources = Path::new(&sysroot).join("lib/rustlib/src/rust/library/core/Cargo.toml");
    let linker = PathBuf::from("bpf-linker");
    let works = first_line(Command::new(&linker).arg("--version")).is_ok();
    (sources.exists() && works).then_some(Toolchain { kind: Kind::Nightly, linker })
}

/// Finds or sets up a toolchain; what is set up stays below `target/`.
pub(crate) fn set_up() -> anyhow::Result<Toolchain> {
    if let Some(toolchain) = nightly() {
        return Ok(toolchain);
    }
    if first_line(Command::new("apt-get").arg("--version")).is_err() {
        bail!(
            "no toolchain for BPF; mend: rustup toolchain install nightly --component rust-src \
             && cargo install bpf-linker"
        );
    }
    let usr = debian::unpack()?;
    let linker = debian::linker(&usr)?;
    Ok(Toolchain { kind: Kind::Debian(usr), linker })
}
