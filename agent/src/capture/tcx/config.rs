//! What a live source is asked to watch, and the interfaces behind the names.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

use crate::capture::CaptureError;

/// Ring size that holds about 30 ms of 4 Gbit/s; it is mapped twice, so resident memory is double.
pub const DEFAULT_RING_BYTES: u32 = 16 * 1024 * 1024;
/// Request bytes that are enough for heads, and for bodies whose length is not declared to be followed.
pub const DEFAULT_REQUEST_BUDGET: u32 = 64 * 1024;

/// An interface by name or by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceRef {
    /// As `ip link` prints it.
    Name(String),
    /// Interface index in the agent's network namespace.
    Index(u32),
}

impl FromStr for InterfaceRef {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Index))
    }
}

impl fmt::Display for InterfaceRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Index(index) => write!(formatter, "{index}"),
        }
    }
}

/// How the packets of an interface are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// TCX links: before every other TC program.
    Tcx,
    /// A packet socket's filter: for kernels without TCX.
    SocketFilter,
}

impl Method {
    /// As configuration and status write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcx => "tcx",
            Self::SocketFilter => "socket-filter",
        }
    }
}

/// Settings of a [`TcxSource`](super::TcxSource).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcxConfig {
    /// Interfaces to attach to.
    pub interfaces: Vec<InterfaceRef>,
    /// Server addresses whose traffic is looked at; everything else is only counted.
    pub endpoints: Vec<SocketAddr>,
    /// Size of the ring buffer in bytes: a power of two, at least one page.
    pub ring_bytes: u32,
    /// Payload bytes copied of each request; every payload packet beyond yields a header record.
    pub request_budget: u32,
    /// Forward the kernel programs' own log to the `log` crate.
    pub kernel_log: bool,
    /// How to look; `None` takes TCX where the kernel has it, else socket filters.
    pub method: Option<Method>,
}

impl TcxConfig {
    /// Watches `endpoints` on `interfaces` with default sizes.
    #[must_use]
    pub fn new(interfaces: Vec<InterfaceRef>, endpoints: Vec<SocketAddr>) -> Self {
        Self {
            interfaces,
            endpoints,
            ring_bytes: DEFAULT_RING_BYTES,
            request_budget: DEFAULT_REQUEST_BUDGET,
            kernel_log: false,
            method: None,
        }
    }

    /// Checks what can be checked without the kernel, and returns the endpoints in plain form,
    /// sorted, each once.
    pub(super) fn checked_endpoints(&self) -> Result<Vec<SocketAddr>, CaptureError> {
        if !self.ring_bytes.is_power_of_two() || self.ring_bytes < 4096 {
            return Err(refused(
                format!("ring size {} is no power of two of at least 4096", self.ring_bytes),
                "set ring_bytes to 16777216 (16 MiB)",
            ));
        }
        checked(&self.endpoints)
    }
}

/// `endpoints` in plain form, sorted, each once.
pub(super) fn checked(endpoints: &[SocketAddr]) -> Result<Vec<SocketAddr>, CaptureError> {
    let mut endpoints: Vec<_> = endpoints.iter().map(|it| canonical(*it)).collect();
    endpoints.sort_unstable();
    endpoints.dedup();
    if let Some(wildcard) = endpoints.iter().find(|it| it.ip().is_unspecified()) {
        return Err(refused(
            format!("endpoint {wildcard} is a wildcard"),
            "name each address that the server is reached at",
        ));
    }
    let most = usize::try_from(agent_ebpf::endpoint::MAX_ENDPOINTS).unwrap_or(usize::MAX);
    if endpoints.len() > most {
        return Err(refused(
            format!("{} endpoints", endpoints.len()),
            &format!("name at most {most} endpoints"),
        ));
    }
    Ok(endpoints)
}

fn refused(what: String, mend: &str) -> CaptureError {
    CaptureError::Program { what, mend: mend.to_owned() }
}

/// IPv4-mapped IPv6 addresses as plain IPv4, flow labels and scopes dropped.
#[must_use]
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The form that map keys and records have.
#[must_use]
pub(super) fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// What lies before the IP header on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkHeader {
    Ethernet,
    None,
}

/// An interface that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) index: u32,
    /// Entry of its counters; found once all interfaces are known.
    pub(super) slot: u32,
    pub(super) loopback: bool,
    pub(super) header: LinkHeader,
}

impl Interface {
    /// An interface of this name in this thread's network namespace still has the index that was attached to.
    pub(super) fn is_there(&self) -> bool {
        nix::net::if_::if_nametoindex(self.name.as_str()).is_ok_and(|index| index == self.index)
    }
}

/// Link types of `include/uapi/linux/if_arp.h`: Ethernet and loopback have an Ethernet header; raw
/// IP, PPP, tun and IP tunnels have none.
fn link_header(link_type: u16) -> Option<LinkHeader> {
    match link_type {
        1 | 772 => Some(LinkHeader::Ethernet),
        512 | 519 | 768 | 769 | 776 | 778 | 823 | 65534 => Some(LinkHeader::None),
        _ => None,
    }
}

/// Whether an interface of this link type (`include/uapi/linux/if_arp.h`) carries IP packets that the
/// programs can find.
#[must_use]
pub fn can_watch(link_type: u16) -> bool {
    link_header(link_type).is_some()
}

/// Whether packets of an interface of this link type begin with an Ethernet header.
#[must_use]
pub fn has_ethernet_header(link_type: u16) -> bool {
    link_header(link_type) == Some(LinkHeader::Ethernet)
}

/// Looks up every reference, in the network namespace of this thread. Goes by netlink, since
/// `/sys/class/net` shows the namespace in which `/sys` was mounted.
pub(super) fn resolve(wanted: &[InterfaceRef]) -> Result<Vec<Interface>, CaptureError> {
    let present = present()?;
    let mut found: Vec<Interface> = Vec::new();
    for reference in wanted {
        let interface = pick(reference, &present)?;
        if !found.contains(&interface) {
            found.push(interface);
        }
    }
    if found.is_empty() {
        return Err(refused("no interface named".to_owned(), "name one, for example lo"));
    }
    Ok(found)
}

struct Present {
    name: String,
    index: u32,
    loopback: bool,
    link_type: u16,
}

fn present() -> Result<Vec<Present>, CaptureError> {
    let addresses = getifaddrs().map_err(|error| CaptureError::System {
        call: "getifaddrs",
        source: error.into(),
        mend: "check that the process may open netlink sockets",
    })?;
    let links = addresses.filter_map(|entry| {
        let link = *entry.address.as_ref()?.as_link_addr()?;
        Some(Present {
            index: u32::try_from(link.ifindex()).ok()?,
            link_type: link.hatype(),
            loopback: entry.flags.contains(InterfaceFlags::IFF_LOOPBACK),
            name: entry.interface_name,
        })
    });
    Ok(links.collect())
}

fn pick(reference: &InterfaceRef, present: &[Present]) -> Result<Interface, CaptureError> {
    let matching = |it: &&Present| match reference {
        InterfaceRef::Name(name) => it.name == *name,
        InterfaceRef::Index(index) => it.index == *index,
    };
    let Some(one) = present.iter().find(matching) else {
        let names: Vec<_> = present.iter().map(|it| it.name.as_str()).collect();
        return Err(refused(
            format!("unknown interface {reference}"),
            &format!("name one of: {}", names.join(", ")),
        ));
    };
    let Some(header) = link_header(one.link_type) else {
        return Err(refused(
            format!("interface {} has link type {}", one.name, one.link_type),
            "name an Ethernet, loopback, tun or IP tunnel interface",
        ));
    };
    Ok(Interface {
        name: one.name.clone(),
        index: one.index,
        slot: 0,
        loopback: one.loopback,
        header,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(endpoints: &[&str]) -> TcxConfig {
        let endpoints = endpoints.iter().map(|it| it.parse().unwrap()).collect();
        TcxConfig::new(vec![InterfaceRef::Name("lo".to_owned())], endpoints)
    }

    #[test]
    fn mapped_addresses_and_repetitions_become_one_endpoint() {
        let config = config(&["[::ffff:10.0.0.1]:80", "10.0.0.1:80", "[::1]:80"]);
        let expected: Vec<SocketAddr> =
            vec!["10.0.0.1:80".parse().unwrap(), "[::1]:80".parse().unwrap()];
        assert_eq!(config.checked_endpoints().unwrap(), expected);
    }

    #[test]
    fn wildcards_empty_lists_and_odd_rings_name_the_mend() {
        let wildcard = config(&["0.0.0.0:80"]).checked_endpoints().unwrap_err().to_string();
        assert!(wildcard.contains("0.0.0.0:80") && wildcard.contains("name each address"));
        assert!(config(&[]).checked_endpoints().unwrap().is_empty());
        let odd = TcxConfig { ring_bytes: 3_000_000, ..config(&["10.0.0.1:80"]) };
        assert!(odd.checked_endpoints().unwrap_err().to_string().contains("16777216"));
    }

    #[test]
    fn unknown_interfaces_are_named_with_those_that_exist() {
        let error = resolve(&[InterfaceRef::Name("nosuch0".to_owned())]).unwrap_err().to_string();
        assert!(error.contains("unknown interface nosuch0") && error.contains("lo"), "{error}");
    }

    #[test]
    fn loopback_is_found_by_name_and_by_index_once() {
        let by_name = resolve(&[InterfaceRef::Name("lo".to_owned())]).unwrap();
        let index = by_name[0].index;
        let both = ["lo".parse().unwrap(), index.to_string().parse().unwrap()];
        assert_eq!(resolve(&both).unwrap(), by_name);
        assert!(by_name[0].loopback);
    }
}
