//! Debian packages: what a command needs is installed, or named.

use std::process::Command;

use anyhow::{Context, bail};

use crate::process::check;

/// Makes sure that every command is there; pairs are command and package.
pub(crate) fn ensure(needed: &[(&str, &'static str)]) -> anyhow::Result<()> {
    let missing = missing(needed);
    if missing.is_empty() {
        return Ok(());
    }
    let install = || {
        let mut apt = Command::new("apt-get");
        // Some packages ask questions (wireshark-common: who may capture); nobody is there to answer.
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        apt.args(["install", "-y", "-q", "--no-install-recommends"]).args(&missing);
        check(&mut apt)
    };
    install()
        .or_else(|_| {
            check(Command::new("apt-get").args(["update", "-q"]))?;
            install()
        })
        .with_context(|| format!("mend: sudo apt-get install {}", missing.join(" ")))
}

/// Packages of those commands that are not there.
pub(crate) fn missing(needed: &[(&str, &'static str)]) -> Vec<&'static str> {
    let missing = needed.iter().filter(|(command, _)| !present(command));
    missing.map(|(_, package)| *package).collect()
}

fn present(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(command).exists())
}

/// Address and release of the repository that the system's packages come from.
pub(crate) fn repository() -> anyhow::Result<(String, String)> {
    let out = Command::new("apt-get")
        .args(["indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT) $(ORIGIN)"])
        .output()
        .context("cannot run apt-get; this needs a Debian host")?;
    let text = String::from_utf8_lossy(&out.stdout);
    let main = text.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (site, release, component, origin) =
            (words.next()?, words.next()?, words.next()?, words.next()?);
        let plain = !release.contains('-') && component == "main" && origin == "Debian";
        plain.then(|| (site.to_owned(), release.to_owned()))
    });
    match main {
        Some(found) => Ok(found),
        None => bail!("apt-get knows no main repository of Debian; mend: apt-get update"),
    }
}
