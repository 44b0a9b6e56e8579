//! Listening TCP sockets of a process's network namespace, and which of them are its own.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::Serialize;

use super::fact::Unknown;
use super::process::Proc;

/// Sockets that are listed at most.
const MOST_LISTENERS: usize = 1024;
/// `TCP_LISTEN` of `include/net/tcp_states.h`, as `/proc/net/tcp` writes it.
const LISTEN: &str = "0A";

/// Whose a socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The process's.
    Process,
    /// Another's in the same network namespace.
    Other,
    /// The process's descriptors could not be read, or the socket is newer than that reading.
    Unknown,
}

/// A listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Listener {
    /// Where it listens.
    pub address: SocketAddr,
    /// Whose it is.
    pub owner: Owner,
}

/// Inodes of the sockets that a process held, and whether that was read just now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) inodes: BTreeSet<u64>,
    pub(super) current: bool,
}

impl Proc {
    /// Inodes of the sockets that a process holds.
    pub(super) fn held(&self, pid: u32) -> Result<BTreeSet<u64>, Unknown> {
        let failed = |error: io::Error| Unknown::failed("/proc/PID/fd", &error);
        let entries = fs::read_dir(self.path(pid, "fd")).map_err(failed)?;
        let inode = |entry: fs::DirEntry| {
            let target = fs::read_link(entry.path()).ok()?;
            target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
        };
        Ok(entries.flatten().filter_map(inode).collect())
    }

    /// Listening sockets of a process's network namespace; `held` are its own.
    pub(super) fn listeners(
        &self,
        pid: u32,
        held: Option<&Held>,
    ) -> Result<Vec<Listener>, Unknown> {
        let mut found = Vec::new();
        for table in ["net/tcp", "net/tcp6"] {
            match fs::read_to_string(self.path(pid, table)) {
                Ok(text) => found.extend(listening(&text)),
                // A kernel without IPv6 has no second table.
                Err(error) if table == "net/tcp6" && error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Unknown::failed("/proc/PID/net/tcp", &error)),
            }
        }
        let listener = |(address, inode)| Listener { address, owner: owner(inode, held) };
        let mut listeners: Vec<_> = found.into_iter().map(listener).collect();
        listeners.sort_unstable();
        listeners.dedup();
        listeners.truncate(MOST_LISTENERS);
        Ok(listeners)
    }
}

fn owner(inode: u64, held: Option<&Held>) -> Owner {
    match held {
        Some(held) if held.inodes.contains(&inode) => Owner::Process,
        Some(Held { current: true, .. }) => Owner::Other,
        _ => Owner::Unknown,
    }
}

/// Address and inode of every listening socket of a table (proc_net_tcp of the kernel's documentation).
fn listening(table: &str) -> Vec<(SocketAddr, u64)> {
    let row = |line: &str| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        (*state == LISTEN).then_some(())?;
        Some((address(local)?, inode.parse().ok()?))
    };
    table.lines().skip(1).filter_map(row).collect()
}

/// The address is written as words in the host's byte order, the port as a number.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
            IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(words).ok()?))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_of_this_process_is_found_as_its_own() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let v6 = std::net::TcpListener::bind("[::1]:0");
        let (proc, pid) = (Proc::default(), std::process::id());
        let held = Held { inodes: proc.held(pid).unwrap(), current: true };
        let found = proc.listeners(pid, Some(&held)).unwrap();
        let own = |address| Listener { address, owner: Owner::Process };
        assert!(found.contains(&own(listener.local_addr().unwrap())), "{found:?}");
        if let Ok(v6) = v6 {
            assert!(found.contains(&own(v6.local_addr().unwrap())), "{found:?}");
        }
        let blind = proc.listeners(pid, None).unwrap();
        assert!(blind.iter().all(|it| it.owner == Owner::Unknown));
        let old = Held { inodes: BTreeSet::new(), current: false };
        assert_eq!(proc.listeners(pid, Some(&old)).unwrap(), blind);
    }

    #[test]
    fn lines_that_are_no_sockets_are_passed_over() {
        assert_eq!(listening("head\n  0: 0100007F:1F90 00000000:0000 01 x\n  garbage\n"), []);
        assert_eq!(address("0100007F"), None);
        assert_eq!(address("ZZ:1"), None);
    }
}
