//! The programs under test, built once per test process.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, bail};

/// The path of `goodput`, `goodput-agent` or `simfleet`, from the same profile as the running test.
///
/// # Errors
/// When the build fails.
pub fn binary(name: &str) -> anyhow::Result<PathBuf> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match FOLDER.get_or_init(|| build().map_err(|error| format!("{error:#}"))) {
        Ok(folder) => Ok(folder.join(name)),
        Err(error) => bail!("{error}"),
    }
}

/// The workspace's folder.
#[must_use]
pub fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn build() -> anyhow::Result<PathBuf> {
    let folder = profile_folder()?;
    let target = folder.parent().context("a profile's folder lies in the target folder")?;
    let profile = match folder.file_name().and_then(OsStr::to_str) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let out = Command::new(cargo)
        .args([
            "build",
            "-p",
            "agent",
            "-p",
            "analyzer",
            "-p",
            "crosscheck",
            "-p",
            "simfleet",
            "--bins",
        ])
        .args(["--profile", profile, "--target-dir"])
        .arg(target)
        .current_dir(workspace())
        .output()
        .context("cannot run cargo")?;
    if !out.status.success() {
        bail!("cargo build failed:\n{}", String::from_utf8_lossy(&out.stderr));
    }
    Ok(folder)
}

/// Cargo puts test programs in the folder `deps` beside the binaries.
fn profile_folder() -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test.parent().and_then(Path::parent).context("the test's own place is unknown")?;
    Ok(folder.to_owned())
}
