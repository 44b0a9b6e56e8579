//! Loading, filling and attaching: all of it, or nothing stays.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use agent_ebpf::counters::{INTERFACE_SLOTS, PACKET_SLOTS, SOCKET_SLOTS};
pub(super) use agent_ebpf::endpoint::ENDPOINT_KEY_LEN;
use agent_ebpf::endpoint::{MAX_INTERFACES, PortSet, interface_slot, port_bit};
use agent_ebpf::tracepoint::{Tracepoint, retransmit, socket_state};
use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{
    LinkOrder, Program, ProgramError, SchedClassifier, SocketFilter, TcAttachType, TracePoint,
};
use aya::{Ebpf, EbpfError, EbpfLoader};

use super::config::{Interface, LinkHeader, Method, TcxConfig, mapped};
use super::packet_socket;
use super::preflight::{PRIVILEGE_MEND, TCX_MEND};
use super::tracefs;
use crate::capture::CaptureError;

/// The committed object; `cargo xtask ebpf` rebuilds it from `agent-ebpf/`.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../bpf/goodput-agent.bpf.o");

/// The reader is woken before its timer when this share of the ring is full: it then has the time of
/// the other seven eighths.
const WAKE_SHARE: u32 = 8;

/// The maps that user space reads while the programs run.
pub(super) struct Maps {
    pub(super) records: RingBuf<MapData>,
    pub(super) packet_counters: PerCpuArray<MapData, [u64; PACKET_SLOTS]>,
    pub(super) socket_counters: PerCpuArray<MapData, [u64; SOCKET_SLOTS]>,
    pub(super) interfaces: PerCpuArray<MapData, [u64; INTERFACE_SLOTS]>,
    pub(super) connections: Array<MapData, i64>,
}

/// A failure of aya, with what the operator can do about it.
pub(super) fn program_error(doing: &str, error: &dyn std::error::Error) -> CaptureError {
    let mut what = format!("{doing}: {error}");
    let mut cause = error.source();
    let mut refused = false;
    while let Some(inner) = cause {
        what = format!("{what}: {inner}");
        cause = inner.source();
        refused |= inner
            .downcast_ref::<io::Error>()
            .is_some_and(|it| it.kind() == io::ErrorKind::PermissionDenied);
    }
    let mend =
        if refused { PRIVILEGE_MEND } else { "goodput-agent doctor says what this host lacks" };
    CaptureError::Program { what, mend: mend.to_owned() }
}

pub(super) fn map_error(name: &'static str) -> impl FnOnce(MapError) -> CaptureError {
    move |error| program_error(name, &error)
}

/// Creates the maps and relocates the programs; nothing runs yet.
pub(super) fn load(config: &TcxConfig, interface_factor: u32) -> Result<Ebpf, CaptureError> {
    EbpfLoader::new()
        .override_global("KERNEL_LOG", &u8::from(config.kernel_log), true)
        .override_global("INTERFACE_FACTOR", &interface_factor, true)
        .override_global("WAKE_BYTES", &(config.ring_bytes / WAKE_SHARE), true)
        .map_max_entries("RECORDS", config.ring_bytes)
        .load(OBJECT)
        .map_err(|error: EbpfError| program_error("loading the kernel programs", &error))
}

fn take(bpf: &mut Ebpf, name: &'static str) -> Result<Map, CaptureError> {
    bpf.take_map(name).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> CaptureError {
    CaptureError::Program {
        what: format!("the committed kernel object has no {name}"),
        mend: "run cargo xtask ebpf and build again".to_owned(),
    }
}

/// Takes the maps that are read later.
pub(super) fn take_maps(bpf: &mut Ebpf) -> Result<Maps, CaptureError> {
    Ok(Maps {
        records: take(bpf, "RECORDS")?.try_into().map_err(map_error("RECORDS"))?,
        packet_counters: take(bpf, "PACKET_COUNTERS")?
            .try_into()
            .map_err(map_error("PACKET_COUNTERS"))?,
        socket_counters: take(bpf, "SOCKET_COUNTERS")?
            .try_into()
            .map_err(map_error("SOCKET_COUNTERS"))?,
        interfaces: take(bpf, "INTERFACES")?.try_into().map_err(map_error("INTERFACES"))?,
        connections: take(bpf, "CONNECTIONS")?.try_into().map_err(map_error("CONNECTIONS"))?,
    })
}

/// The bytes of an [`agent_ebpf::endpoint::EndpointKey`].
pub(super) fn key_bytes(endpoint: SocketAddr) -> [u8; ENDPOINT_KEY_LEN] {
    let mut bytes = [0; ENDPOINT_KEY_LEN];
    bytes[..16].copy_from_slice(&mapped(endpoint.ip()));
    bytes[16..18].copy_from_slice(&endpoint.port().to_ne_bytes());
    bytes
}

pub(super) fn map_mut<'a>(
    bpf: &'a mut Ebpf,
    name: &'static str,
) -> Result<&'a mut Map, CaptureError> {
    bpf.map_mut(name).ok_or_else(|| missing(name))
}

/// Tells the programs how many bytes of each request to copy.
pub(super) fn set_request_bytes(bpf: &mut Ebpf, bytes: u32) -> Result<(), CaptureError> {
    let name = "OPTIONS";
    // The bytes of `agent_ebpf::endpoint::Options`, its one field.
    let mut options: Array<_, u32> = map_mut(bpf, name)?.try_into().map_err(map_error(name))?;
    options.set(0, bytes, 0).map_err(map_error(name))
}

/// Tells the programs which ports some endpoint has, all at once.
pub(super) fn set_ports(
    bpf: &mut Ebpf,
    ports: impl IntoIterator<Item = u16>,
) -> Result<(), CaptureError> {
    let mut set: PortSet = [0; _];
    for port in ports {
        let (word, bit) = port_bit(port);
        if let Some(word) = set.get_mut(word) {
            *word |= bit;
        }
    }
    let name = "PORTS";
    let mut map: Array<_, PortSet> = map_mut(bpf, name)?.try_into().map_err(map_error(name))?;
    map.set(0, set, 0).map_err(map_error(name))
}

/// Tells the programs what to look at: endpoint `i` gets connection slot `i`. The hash comes before
/// the ports, so that nothing is looked at with half the tables. Maps stay in `bpf`: programs that
/// are loaded later refer to them.
pub(super) fn fill_endpoints(bpf: &mut Ebpf, endpoints: &[SocketAddr]) -> Result<(), CaptureError> {
    let name = "ENDPOINTS";
    let mut keys: HashMap<_, [u8; ENDPOINT_KEY_LEN], u32> =
        map_mut(bpf, name)?.try_into().map_err(map_error(name))?;
    for (slot, endpoint) in (0_u32..).zip(endpoints) {
        keys.insert(key_bytes(*endpoint), slot, 0).map_err(map_error(name))?;
    }
    set_ports(bpf, endpoints.iter().map(SocketAddr::port))
}

/// An odd factor with which no two of the indices share an entry of the interface table. With at most
/// `MAX_INTERFACES` of them one in ten does.
pub(super) fn interface_factor(indices: &[u32]) -> Result<u32, CaptureError> {
    const ATTEMPTS: u32 = 100_000;
    // Steps by the golden ratio reach every odd number (Knuth, volume 3, section 6.4).
    let candidates = (0..ATTEMPTS).map(|step| step.wrapping_mul(0x9e37_79b9) | 1);
    let spreads = |factor: &u32| {
        let slots: BTreeSet<u32> =
            indices.iter().map(|index| interface_slot(*index, *factor)).collect();
        slots.len() == indices.len()
    };
    let most = usize::try_from(MAX_INTERFACES).unwrap_or(usize::MAX);
    let factor = candidates.take(if indices.len() > most { 0 } else { usize::MAX }).find(spreads);
    factor.ok_or_else(|| CaptureError::Program {
        what: format!("{} interfaces are too many for one agent", indices.len()),
        mend: format!("name at most {most} interfaces; another agent can watch the others"),
    })
}

/// Gives each interface its entry in the table of counters; returns the factor for the programs.
pub(super) fn spread(interfaces: &mut [Interface]) -> Result<u32, CaptureError> {
    let indices: Vec<u32> = interfaces.iter().map(|it| it.index).collect();
    let factor = interface_factor(&indices)?;
    for interface in interfaces {
        interface.slot = interface_slot(interface.index, factor);
    }
    Ok(factor)
}

/// Programs of an interface: on loopback every packet passes egress and ingress, and ingress alone
/// sees each of them once.
fn programs(interface: &Interface) -> &'static [(&'static str, TcAttachType)] {
    const ETHERNET: [(&str, TcAttachType); 2] =
        [("ingress_ethernet", TcAttachType::Ingress), ("egress_ethernet", TcAttachType::Egress)];
    const IP: [(&str, TcAttachType); 2] =
        [("ingress_ip", TcAttachType::Ingress), ("egress_ip", TcAttachType::Egress)];
    let both: &'static [_] = match interface.header {
        LinkHeader::Ethernet => &ETHERNET,
        LinkHeader::None => &IP,
    };
    if interface.loopback { both.get(..1).unwrap_or(both) } else { both }
}

fn attach_error(interface: &Interface, error: &ProgramError) -> CaptureError {
    let no_tcx = matches!(
        error,
        ProgramError::SyscallError(call)
            if call.call == "bpf_mprog_attach"
                && call.io_error.raw_os_error() == Some(libc::EINVAL)
    );
    let doing = format!("attaching to {}", interface.name);
    match program_error(&doing, error) {
        CaptureError::Program { what, .. } if no_tcx => {
            CaptureError::Program { what, mend: TCX_MEND.to_owned() }
        }
        other => other,
    }
}

fn program_mut<'a, P>(bpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P, CaptureError>
where
    &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
{
    bpf.program_mut(name)
        .ok_or_else(|| missing(name))?
        .try_into()
        .map_err(|error| program_error(name, &error))
}

fn attach_tcx(bpf: &mut Ebpf, interface: &Interface) -> Result<(), CaptureError> {
    for (name, direction) in programs(interface) {
        let program: &mut SchedClassifier = program_mut(bpf, name)?;
        if program.fd().is_err() {
            program.load().map_err(|error| program_error(name, &error))?;
        }
        // First in order, so that no other program can hide packets; no qdisc is made.
        let options = TcAttachOptions::TcxOrder(LinkOrder::first());
        program
            .attach_with_options(&interface.name, *direction, options)
            .map_err(|error| attach_error(interface, &error))?;
    }
    Ok(())
}

fn attach_socket(bpf: &mut Ebpf, interface: &Interface) -> Result<OwnedFd, CaptureError> {
    let name = "packet_socket";
    let filter: &mut SocketFilter = program_mut(bpf, name)?;
    if filter.fd().is_err() {
        filter.load().map_err(|error| program_error(name, &error))?;
    }
    packet_socket::open(filter, interface)
}

fn attach_tracepoint(
    bpf: &mut Ebpf,
    program: &'static str,
    tracepoint: &Tracepoint,
) -> Result<(), CaptureError> {
    let loaded: &mut TracePoint = program_mut(bpf, program)?;
    loaded.load().map_err(|error| program_error(program, &error))?;
    loaded
        .attach(tracepoint.category, tracepoint.name)
        .map_err(|error| program_error(program, &error))?;
    Ok(())
}

/// Attaches to the tracepoint of socket states.
pub(super) fn attach_sockets(bpf: &mut Ebpf) -> Result<(), CaptureError> {
    attach_tracepoint(bpf, "socket_state", &socket_state::TRACEPOINT)
}

/// Attaches to the tracepoint of retransmissions.
pub(super) fn attach_retransmits(bpf: &mut Ebpf) -> Result<(), CaptureError> {
    tracefs::check_retransmit()?;
    attach_tracepoint(bpf, "retransmit", &retransmit::TRACEPOINT)
}

/// Attaches to every interface. TCX links live in `bpf` and end with it, socket filters end with the
/// sockets returned: nothing is pinned.
pub(super) fn attach_interfaces(
    bpf: &mut Ebpf,
    interfaces: &[Interface],
    method: Method,
) -> Result<Vec<OwnedFd>, CaptureError> {
    let mut sockets = Vec::new();
    for interface in interfaces {
        match method {
            Method::Tcx => attach_tcx(bpf, interface)?,
            Method::SocketFilter => sockets.push(attach_socket(bpf, interface)?),
        }
    }
    Ok(sockets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_watched_interfaces_share_an_entry() {
        let most = MAX_INTERFACES;
        let patterns: [Vec<u32>; 3] = [
            (1..=most).collect(),
            // As far apart as the table is long.
            (1..=most).map(|it| it * 1024).collect(),
            (1..=most).map(|it| it.wrapping_mul(0x0101_0101)).collect(),
        ];
        for indices in patterns {
            let factor = interface_factor(&indices).unwrap();
            let slots: BTreeSet<_> =
                indices.iter().map(|index| interface_slot(*index, factor)).collect();
            assert_eq!(slots.len(), indices.len());
            assert!(slots.iter().all(|slot| *slot < agent_ebpf::endpoint::INTERFACE_TABLE));
        }
    }

    #[test]
    fn more_interfaces_than_the_table_is_made_for_are_refused_with_the_mend() {
        let indices: Vec<u32> = (0..=MAX_INTERFACES).collect();
        let error = interface_factor(&indices).unwrap_err().to_string();
        assert!(error.contains("65 interfaces") && error.contains("at most 64"), "{error}");
    }
}
