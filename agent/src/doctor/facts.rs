//! What is known of a host, as data.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use caps::CapsHashSet;

use super::vip::VipFacts;
use crate::capture::foreign::ForeignProgram;
use crate::capture::tcx::Method;
use crate::config::Config;
use crate::sockdiag::NamespaceView;

/// Files of the kernel that are read as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum File {
    /// Modes of the lockdown module, the one in force in brackets (`kernel_lockdown(7)`).
    Lockdown,
    /// Who may use BPF at all (`Documentation/admin-guide/sysctl/kernel.rst`).
    UnprivilegedBpf,
    /// Whether every BPF program's runs are timed.
    BpfStats,
    /// Whether BPF programs are compiled (`Documentation/admin-guide/sysctl/net.rst`).
    BpfJit,
    /// What the kernel's clock ticks by.
    ClockSource,
    /// Offsets of this time namespace (`time_namespaces(7)`).
    TimeOffsets,
}

impl File {
    /// Every file.
    pub const ALL: [Self; 6] = [
        Self::Lockdown,
        Self::UnprivilegedBpf,
        Self::BpfStats,
        Self::BpfJit,
        Self::ClockSource,
        Self::TimeOffsets,
    ];

    /// Where it is.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Lockdown => "/sys/kernel/security/lockdown",
            Self::UnprivilegedBpf => "/proc/sys/kernel/unprivileged_bpf_disabled",
            Self::BpfStats => "/proc/sys/kernel/bpf_stats_enabled",
            Self::BpfJit => "/proc/sys/net/core/bpf_jit_enable",
            Self::ClockSource => "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            Self::TimeOffsets => "/proc/self/timens_offsets",
        }
    }
}

/// A program of the agent's, and what the kernel's verifier thought of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Its name.
    pub name: String,
    /// Instructions that the verifier walked, where it tells; or why it was refused.
    pub verdict: Result<Option<u32>, String>,
}

/// What this process may do.
#[derive(Clone, Debug, Default)]
pub struct Privileges {
    /// It runs as user 0, who owns tracefs.
    pub root: bool,
    /// Capabilities in force.
    pub effective: CapsHashSet,
    /// Capabilities that it could put in force.
    pub permitted: CapsHashSet,
    /// Capabilities that it could ever get.
    pub bounding: CapsHashSet,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// It is up.
    pub up: bool,
    /// It is a loopback interface.
    pub loopback: bool,
    /// Its link type (`include/uapi/linux/if_arp.h`).
    pub link_type: u16,
    /// Largest packet in bytes.
    pub mtu: Option<u32>,
    /// Received segments are merged by the kernel (GRO).
    pub gro: Option<bool>,
    /// Received segments are merged by the card (LRO), which loses their boundaries.
    pub lro: Option<bool>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// Where the sockets of the configured endpoints are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketPlaces {
    /// Network namespaces whose sockets can be listed.
    pub namespaces: Vec<NamespaceView>,
}

/// What is at the API's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiState {
    /// Nothing: the agent can listen there.
    Free,
    /// An agent.
    Agent,
    /// Something that keeps the agent from listening there.
    Refused(String),
}

/// What is known of the file that holds the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFile {
    /// Its name.
    pub path: PathBuf,
    /// Bits of its mode, and the length of what it holds in bytes.
    pub content: Result<(u32, usize), String>,
}

/// One look at the clocks, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC.
    pub offset_ns: i128,
    /// Time between the two looks at CLOCK_MONOTONIC that enclose the other: the offset's uncertainty.
    pub within_ns: u64,
    /// Cost of one look at CLOCK_MONOTONIC.
    pub read_ns: u64,
}

/// A host, as far as it could be asked.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The kernel's release.
    pub release: String,
    /// It has BPF ring buffers; `None` where it could not be asked.
    pub ring_buffers: Option<bool>,
    /// It has TCX links.
    pub tcx: Option<bool>,
    /// It has socket filters of eBPF.
    pub socket_filters: Option<bool>,
    /// Why the tracepoint of socket states can't be used.
    pub socket_states: Result<(), String>,
    /// Why the tracepoint of retransmissions can't be used.
    pub retransmits: Result<(), String>,
    /// It describes its own types (BTF).
    pub btf: bool,
    /// What became of loading the programs, or why there is nothing to load; `None` when it was not
    /// tried.
    pub programs: Option<Result<Vec<Loaded>, String>>,
    /// The source that is asked for, if one is.
    pub forced: Option<Method>,
    /// What this process may do.
    pub privileges: Privileges,
    /// Texts of the kernel's files; without those that can't be read.
    pub files: BTreeMap<File, String>,
    /// Most bytes of memory that this process may lock; `None` for any number.
    pub memlock: Option<u64>,
    /// Size of the ring in bytes.
    pub ring_bytes: u32,
    /// Interfaces of this network namespace.
    pub links: Result<Vec<Link>, String>,
    /// Interfaces to watch, as configured.
    pub wanted: Vec<String>,
    /// Programs of others by interface, or why they can't be listed.
    pub foreign: BTreeMap<String, Result<Vec<ForeignProgram>, String>>,
    /// The configuration; `None` when there is none to look at.
    pub config: Option<Result<Config, String>>,
    /// What is at the API's address.
    pub api: Option<ApiState>,
    /// The file of the token, where one is configured.
    pub token: Option<TokenFile>,
    /// Why observations can't be appended to the JSONL file.
    pub jsonl: Option<(PathBuf, Result<(), String>)>,
    /// Where sockets can be listed.
    pub sockets: Result<SocketPlaces, String>,
    /// The clocks; `None` where the kernel refuses to tell.
    pub clocks: Option<Clocks>,
    /// What is known of a virtual service.
    pub vip: Option<VipFacts>,
}

impl Facts {
    /// Text of one of the kernel's files.
    pub(super) fn file(&self, file: File) -> Option<&str> {
        self.files.get(&file).map(|text| text.trim())
    }

    /// Addresses that are configured.
    pub(super) fn endpoints(&self) -> Vec<SocketAddr> {
        let config = self.config.as_ref().and_then(|it| it.as_ref().ok());
        config.map(|it| it.endpoints.iter().map(|it| it.address).collect()).unwrap_or_default()
    }

    /// The interface that is called so, by name or by index.
    pub(super) fn link(&self, wanted: &str) -> Option<&Link> {
        let links = self.links.as_ref().ok()?;
        links.iter().find(|link| link.name == wanted || link.index.to_string() == wanted)
    }

    /// The interfaces to watch that exist.
    pub(super) fn watched(&self) -> impl Iterator<Item = &Link> {
        self.wanted.iter().filter_map(|wanted| self.link(wanted))
    }
}
