//! The network namespaces of this host, and visits to them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use caps::{CapSet, Capability};
use nix::ifaddrs::getifaddrs;
use nix::sched::{CloneFlags, setns};

use super::{DiagError, NamespaceId};
use crate::capture::tcx::Missing;

/// Where named namespaces are mounted: iproute2's folder and Docker's.
const NAMED: [&str; 2] = ["/run/netns", "/run/docker/netns"];
/// The namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// What keeps the agent from looking into other network namespaces. It watches all the same: then
/// only sockets of its own namespace are reconciled.
#[must_use]
pub fn preflight() -> Vec<Missing> {
    let lacking: Vec<String> = [Capability::CAP_SYS_ADMIN, Capability::CAP_SYS_PTRACE]
        .into_iter()
        .filter(|it| !caps::has_cap(None, CapSet::Effective, *it).unwrap_or(false))
        .map(|it| it.to_string())
        .collect();
    if lacking.is_empty() {
        return Vec::new();
    }
    vec![Missing {
        what: format!(
            "{}, needed to find and to enter other network namespaces: endpoints in containers are \
             counted by the tracepoint, but not reconciled, and their older connections are unknown",
            lacking.join(" and ")
        ),
        mend: "run the agent as root, or add cap_sys_admin,cap_sys_ptrace to its capabilities; it \
               drops them before it starts to watch"
            .to_owned(),
    }]
}

/// The namespace of this thread.
pub(super) fn own() -> Result<(NamespaceId, File), DiagError> {
    let opened = File::open(OWN).and_then(|file| Ok((file.metadata()?.ino(), file)));
    let (inode, file) = opened.map_err(|source| DiagError::System {
        call: "opening /proc/thread-self/ns/net",
        source,
        mend: "mount /proc where the agent runs",
    })?;
    Ok((NamespaceId(inode), file))
}

/// Every namespace that a process or a name holds. Those that may not be looked at are left out:
/// [`preflight`] has said so.
pub(super) fn all() -> BTreeMap<NamespaceId, File> {
    let mut found = BTreeMap::new();
    for path in candidates() {
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?.ino(), file)));
        if let Ok((inode, file)) = opened {
            found.entry(NamespaceId(inode)).or_insert(file);
        }
    }
    found
}

fn entries(folder: impl AsRef<Path>) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// One path for each link's target: thousands of processes share a few namespaces.
fn candidates() -> Vec<PathBuf> {
    let is_process = |path: &PathBuf| {
        let name = path.file_name().map(OsStr::as_encoded_bytes);
        name.and_then(<[u8]>::first).is_some_and(u8::is_ascii_digit)
    };
    let mut by_target = BTreeMap::new();
    for path in entries("/proc").filter(is_process).map(|path| path.join("ns/net")) {
        if let Ok(target) = fs::read_link(&path) {
            by_target.entry(target).or_insert(path);
        }
    }
    by_target.into_values().chain(NAMED.into_iter().flat_map(entries)).collect()
}

/// Runs `action` in `namespace` and comes back to `home`. Only the calling thread moves.
///
/// # Errors
/// [`DiagError::Stranded`] when it could not come back: then it must not go on.
pub(super) fn visit<T>(
    namespace: &File,
    home: &File,
    action: impl FnOnce() -> Result<T, DiagError>,
) -> Result<T, DiagError> {
    setns(namespace, CloneFlags::CLONE_NEWNET).map_err(|error| DiagError::System {
        call: "setns",
        source: error.into(),
        mend: "run the agent as root, or add cap_sys_admin to its capabilities",
    })?;
    let result = action();
    setns(home, CloneFlags::CLONE_NEWNET)
        .map_err(|error| DiagError::Stranded { source: error.into() })?;
    result
}

/// Addresses of this thread's namespace.
pub(super) fn addresses() -> Vec<IpAddr> {
    let Ok(interfaces) = getifaddrs() else { return Vec::new() };
    let ip = |address: nix::sys::socket::SockaddrStorage| {
        let v4 = address.as_sockaddr_in().map(|it| IpAddr::V4(it.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|it| IpAddr::V6(it.ip()).to_canonical()))
    };
    interfaces.filter_map(|it| it.address).filter_map(ip).collect()
}
