//! Static release binaries of the gnu target: the installed toolchain makes them, nothing is fetched.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use sha2::{Digest as _, Sha256};

use crate::process::{cargo, check, root};

/// Named on the command line, so that build scripts and macros are not linked statically, too.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A binary ready to be copied to hosts.
pub(crate) struct Distribution {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Where a static binary is built.
pub(crate) fn binary(name: &str) -> PathBuf {
    target_folder().join(TARGET).join("release").join(name)
}

/// Builds packages.
pub(crate) fn build(packages: &[&str]) -> anyhow::Result<()> {
    let mut command = cargo(["build", "--release", "--target", TARGET]);
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    command.env("RUSTFLAGS", "-C target-feature=+crt-static");
    // What is shipped is compiled in one go.
    command.env("CARGO_INCREMENTAL", "0");
    check(&mut command)
}

/// Strips the agent into `target/dist`, proves that it is static, and writes its checksum beside it.
pub(crate) fn distribute() -> anyhow::Result<Distribution> {
    let folder = target_folder().join("dist");
    fs::create_dir_all(&folder)?;
    let name = format!("goodput-agent-{}-x86_64", env!("CARGO_PKG_VERSION"));
    let path = folder.join(&name);
    check(Command::new("strip").arg("-o").arg(&path).arg(binary("goodput-agent")))
        .context("mend: apt-get install binutils")?;
    let bytes = fs::read(&path)?;
    ensure_static(&bytes).with_context(|| path.display().to_string())?;
    let sha256 = Sha256::digest(&bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    });
    fs::write(folder.join(format!("{name}.sha256")), format!("{sha256}  {name}\n"))?;
    Ok(Distribution { path, bytes: u64::try_from(bytes.len())?, sha256 })
}

/// A program that names no interpreter is loaded by the kernel alone.
fn ensure_static(elf: &[u8]) -> anyhow::Result<()> {
    use object::elf::{FileHeader64, PT_INTERP};
    let header = FileHeader64::<object::Endianness>::parse(elf)?;
    let endian = header.endian()?;
    let interpreter =
        header.program_headers(endian, elf)?.iter().any(|it| it.p_type(endian) == PT_INTERP);
    if interpreter {
        bail!("the binary asks for an interpreter: it is not static");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_is_refused() {
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        let refused = ensure_static(&own).unwrap_err().to_string();
        assert!(refused.contains("interpreter"), "{refused}");
        assert!(ensure_static(b"no program").is_err());
    }
}
