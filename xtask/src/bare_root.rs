//! The binary where nothing is installed: a root folder that holds it and the kernel's file systems,
//! in a network namespace of its own; then a minimal Debian.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::packages;
use crate::process::{check, display, root};

/// A network namespace with `lo` up; deleted when it goes.
struct Namespace(String);

impl Namespace {
    fn new() -> anyhow::Result<Self> {
        let name = format!("goodput-dist-{}", std::process::id());
        check(Command::new("ip").args(["netns", "add", &name]))?;
        let namespace = Self(name);
        check(Command::new("ip").args(["-n", &namespace.0, "link", "set", "lo", "up"]))?;
        Ok(namespace)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = check(Command::new("ip").args(["netns", "delete", &self.0])) {
            eprintln!("warning: {error:#}");
        }
    }
}

/// A folder with `/proc` and `/sys` mounted; unmounted when it goes.
struct Mounted(PathBuf);

impl Mounted {
    fn new(folder: &Path) -> anyhow::Result<Self> {
        let mounted = Self(folder.to_path_buf());
        for (kind, place) in [("proc", "proc"), ("sysfs", "sys"), ("tracefs", "sys/kernel/tracing")]
        {
            let place = folder.join(place);
            if kind != "tracefs" {
                fs::create_dir_all(&place)?;
            }
            check(Command::new("mount").args(["-t", kind, kind]).arg(place))?;
        }
        Ok(mounted)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for place in ["sys/kernel/tracing", "sys", "proc"] {
            // What was not mounted is not there to be unmounted.
            let _ = Command::new("umount").arg(self.0.join(place)).output();
        }
    }
}

/// Runs the binary in both roots; anything but success is an error.
pub(crate) fn try_out(binary: &Path) -> anyhow::Result<()> {
    packages::ensure(&[
        ("debootstrap", "debootstrap"),
        ("ip", "iproute2"),
        ("nsenter", "util-linux"),
    ])?;
    let namespace = Namespace::new()?;
    let empty = root().join("target/dist/empty-root");
    fs::create_dir_all(&empty)?;
    try_in("empty root", &empty, binary, &namespace)?;
    let debian = minimal_debian()?;
    try_in("minimal Debian", &debian, binary, &namespace)
}

/// Made once; the same release as the host's.
fn minimal_debian() -> anyhow::Result<PathBuf> {
    let folder = root().join("target/dist/debian");
    let done = folder.join("goodput-debootstrap-done");
    if !done.exists() {
        let (site, release) = packages::repository()?;
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        eprintln!("minimal Debian: debootstrap {release}, a minute or two");
        let mut command = Command::new("debootstrap");
        command.args(["--variant=minbase", &release]).arg(&folder).arg(site);
        let out = command.output()?;
        if !out.status.success() {
            bail!("`{}` failed: {}", display(&command), String::from_utf8_lossy(&out.stdout));
        }
        fs::write(done, release)?;
    }
    Ok(folder)
}

fn try_in(what: &str, folder: &Path, binary: &Path, namespace: &Namespace) -> anyhow::Result<()> {
    fs::copy(binary, folder.join("goodput-agent"))?;
    let mounted = Mounted::new(folder)?;
    for arguments in [&["--help"][..], &["doctor", "--json"], &["selftest", "--json"]] {
        let out = inside(&mounted, namespace, arguments)?;
        // The doctor's 1: the agent runs, and something is limited.
        let limited = arguments.first() == Some(&"doctor") && out.status.code() == Some(1);
        if !out.status.success() && !limited {
            let (said, why) =
                (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
            bail!("{what}: goodput-agent {} failed: {said}{why}", arguments.join(" "));
        }
        println!("{what}: goodput-agent {}: {}", arguments.join(" "), summary(&out));
    }
    Ok(())
}

fn inside(mounted: &Mounted, namespace: &Namespace, arguments: &[&str]) -> anyhow::Result<Output> {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/var/run/netns/{}", namespace.0)).arg("chroot").arg(&mounted.0);
    command
        .arg("/goodput-agent")
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.output().context("cannot start nsenter")
}

fn summary(out: &Output) -> String {
    let Ok(report) = serde_json::from_slice::<Value>(&out.stdout) else {
        return "ok".to_owned();
    };
    match report["checks"].as_array() {
        Some(checks) => format!("{} checks right, source {}", checks.len(), report["source"]),
        None => format!("ready {}", report["ready"]),
    }
}
