//! Network namespaces and the links between them.

use std::ffi::OsStr;
use std::fs::File;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;
use nix::sched::{CloneFlags, setns};

use crate::process::check;

/// A network namespace of its own. Dropping it deletes it and its links.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

/// One end of a link.
#[derive(Clone, Copy, Debug)]
pub struct LinkEnd<'a> {
    /// Where it lies.
    pub namespace: &'a Namespace,
    /// The interface's name.
    pub interface: &'a str,
    /// Its address with the length of the prefix.
    pub address: &'a str,
}

impl Namespace {
    /// Makes a namespace with its loopback interface up. Its name is free on any shared host.
    ///
    /// # Errors
    /// Without the privilege, or without `ip`.
    pub fn new(label: &str) -> anyhow::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("goodput-{}-{number}-{label}", std::process::id());
        check(ip(&["netns", "add", &name]))?;
        let namespace = Self { name };
        check(namespace.ip(&["link", "set", "lo", "up"]))?;
        Ok(namespace)
    }

    /// A command that runs `program` inside. (`ip netns exec` would remount /sys and hide tracefs.)
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.name)).arg(program);
        command
    }

    /// Runs `action` in a thread inside: sockets that it opens belong to the namespace.
    ///
    /// # Errors
    /// When the namespace cannot be entered, or `action` fails.
    pub fn inside<T: Send>(
        &self,
        action: impl FnOnce() -> anyhow::Result<T> + Send,
    ) -> anyhow::Result<T> {
        let namespace = File::open(format!("/run/netns/{}", self.name))?;
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                setns(namespace, CloneFlags::CLONE_NEWNET).context("cannot enter the namespace")?;
                action()
            });
            thread.join().unwrap_or_else(|_| anyhow::bail!("the thread inside panicked"))
        })
    }

    fn ip(&self, args: &[&str]) -> Command {
        let mut command = ip(&["-n", &self.name]);
        command.args(args);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = check(ip(&["netns", "delete", &self.name])) {
            eprintln!("{error:#}");
        }
    }
}

/// Joins two namespaces by a pair of interfaces, both up.
///
/// # Errors
/// When an interface exists already, or an address is not one.
pub fn link(a: LinkEnd<'_>, b: LinkEnd<'_>) -> anyhow::Result<()> {
    let mut pair = a.namespace.ip(&["link", "add", a.interface, "type", "veth", "peer", "name"]);
    pair.args([b.interface, "netns", &b.namespace.name]);
    check(pair)?;
    for end in [a, b] {
        check(end.namespace.ip(&["address", "add", end.address, "dev", end.interface]))?;
        check(end.namespace.ip(&["link", "set", end.interface, "up"]))?;
    }
    Ok(())
}

fn ip(args: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.args(args);
    command
}
