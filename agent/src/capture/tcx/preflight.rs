//! What this host lacks for live capture, as data.

use std::io;

use aya::maps::MapType;
use aya::programs::{ProgramError, SchedClassifier, TcAttachType};
use caps::{CapSet, Capability};

use super::config::Method;
use super::tracefs;
use crate::capture::CaptureError;

/// What gives the binary what it needs.
pub(super) const PRIVILEGE_MEND: &str = "run it as root (sudo goodput-agent run ...), or give it \
    its capabilities: sudo setcap \
    cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw,cap_dac_read_search+ep \
    \"$(command -v goodput-agent)\"";
/// What a kernel without TCX links needs.
pub(super) const TCX_MEND: &str = "TCX links need Linux 6.6 or later (or a distribution kernel \
    that has them); leave out --source, or choose --source socket-filter";
const KERNEL_MEND: &str = "live capture needs Linux 5.8 or later; read a capture file instead: \
    goodput-agent read FILE";

/// One thing that is missing, and the line that gives it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Missing {
    /// What is missing.
    pub what: String,
    /// What the operator can do about it.
    pub mend: String,
}

/// What a host says about itself; tests have others than [`Host`].
pub trait Probe {
    /// Whether this thread has a capability.
    fn holds(&self, capability: Capability) -> bool;
    /// Why the tracepoint of socket states can't be used, if so.
    fn tracepoint_obstacle(&self, may_mount: bool) -> Option<CaptureError>;
    /// Whether the kernel has BPF ring buffers.
    fn has_ring_buffers(&self) -> bool;
    /// Whether the kernel has TCX links.
    fn has_tcx(&self) -> bool;
}

/// The host that this process runs on.
#[derive(Clone, Copy, Debug)]
pub struct Host;

impl Probe for Host {
    fn holds(&self, capability: Capability) -> bool {
        caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false)
    }

    fn tracepoint_obstacle(&self, may_mount: bool) -> Option<CaptureError> {
        tracefs::obstacle(may_mount)
    }

    fn has_ring_buffers(&self) -> bool {
        // A kernel that can't be asked is told by the load itself.
        aya::sys::is_map_supported(MapType::RingBuf).unwrap_or(true)
    }

    fn has_tcx(&self) -> bool {
        // Asks for the programs on `lo` rather than for the kernel's version: distributions have added
        // TCX to older ones. Any other failure comes after the query itself: looking at somebody
        // else's program.
        !matches!(
            SchedClassifier::query_tcx("lo", TcAttachType::Ingress),
            Err(ProgramError::SyscallError(call))
                if call.call == "bpf_prog_query"
                    && call.io_error.kind() == io::ErrorKind::InvalidInput
        )
    }
}

/// Everything that would keep [`TcxSource::open`](super::TcxSource::open) from working here with the
/// method that suits this kernel; empty when nothing would. Changes nothing on the host.
#[must_use]
pub fn preflight() -> Vec<Missing> {
    preflight_of(&Host, None)
}

/// The same for any host, and for a method that is asked for.
#[must_use]
pub fn preflight_of(host: &dyn Probe, method: Option<Method>) -> Vec<Missing> {
    let mut missing: Vec<_> = lacking(host, &[BPF, PERFMON, NET_ADMIN]).into_iter().collect();
    let privileged = missing.is_empty();
    missing.extend(host.tracepoint_obstacle(host.holds(ADMIN)).map(|error| Missing {
        what: "the tracepoint sock:inet_sock_set_state".to_owned(),
        mend: error.to_string(),
    }));
    // Without the privilege to ask, the kernel's answer says nothing about what it has.
    if privileged {
        missing.extend(missing_in_kernel(host, method));
    }
    missing
}

fn missing_in_kernel(host: &dyn Probe, method: Option<Method>) -> Option<Missing> {
    if !host.has_ring_buffers() {
        let what = "unsupported kernel: it has no BPF ring buffers".to_owned();
        return Some(Missing { what, mend: KERNEL_MEND.to_owned() });
    }
    match method.unwrap_or_else(|| suitable(host)) {
        Method::Tcx if !host.has_tcx() => {
            let what = "unsupported kernel: it has no TCX links".to_owned();
            Some(Missing { what, mend: TCX_MEND.to_owned() })
        }
        Method::Tcx => None,
        Method::SocketFilter => lacking(host, &[NET_RAW]),
    }
}

/// The method for a host when none is asked for.
pub(super) fn suitable(host: &dyn Probe) -> Method {
    if host.has_tcx() { Method::Tcx } else { Method::SocketFilter }
}

/// Whether live capture would work here.
#[must_use]
pub fn supported() -> bool {
    preflight().is_empty()
}

const ADMIN: Capability = Capability::CAP_SYS_ADMIN;
const BPF: Capability = Capability::CAP_BPF;
const PERFMON: Capability = Capability::CAP_PERFMON;
const NET_ADMIN: Capability = Capability::CAP_NET_ADMIN;
const NET_RAW: Capability = Capability::CAP_NET_RAW;

/// `CAP_SYS_ADMIN` includes the two that were split from it (capabilities(7)).
fn lacking(host: &dyn Probe, needed: &[Capability]) -> Option<Missing> {
    let included = |it: Capability| matches!(it, BPF | PERFMON) && host.holds(ADMIN);
    let names: Vec<_> = needed
        .iter()
        .filter(|it| !host.holds(**it) && !included(**it))
        .map(ToString::to_string)
        .collect();
    (!names.is_empty()).then(|| Missing {
        what: format!("privilege: {}", names.join(", ")),
        mend: PRIVILEGE_MEND.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Other {
        capabilities: Vec<Capability>,
        ring_buffers: bool,
        tcx: bool,
    }

    impl Probe for Other {
        fn holds(&self, capability: Capability) -> bool {
            self.capabilities.contains(&capability)
        }

        fn tracepoint_obstacle(&self, _: bool) -> Option<CaptureError> {
            None
        }

        fn has_ring_buffers(&self) -> bool {
            self.ring_buffers
        }

        fn has_tcx(&self) -> bool {
            self.tcx
        }
    }

    /// Before TCX links came.
    fn older() -> Other {
        Other {
            capabilities: vec![BPF, PERFMON, NET_ADMIN, NET_RAW],
            ring_buffers: true,
            tcx: false,
        }
    }

    #[test]
    fn an_older_kernel_is_served_by_the_fallback_unless_tcx_is_asked_for() {
        assert_eq!(preflight_of(&older(), None), []);
        assert_eq!(suitable(&older()), Method::SocketFilter);
        let forced = preflight_of(&older(), Some(Method::Tcx));
        assert!(forced[0].what.contains("unsupported kernel"), "{forced:?}");
        assert!(forced[0].mend.contains("--source socket-filter"), "{forced:?}");
    }

    #[test]
    fn only_the_fallback_needs_packet_sockets() {
        let capabilities = vec![BPF, PERFMON, NET_ADMIN];
        let older = Other { capabilities: capabilities.clone(), ..older() };
        assert_eq!(preflight_of(&older, None)[0].what, "privilege: CAP_NET_RAW");
        let newer = Other { capabilities, tcx: true, ..older };
        assert_eq!(preflight_of(&newer, None), []);
        assert_eq!(preflight_of(&newer, Some(Method::SocketFilter)).len(), 1);
    }

    #[test]
    fn a_kernel_without_ring_buffers_is_named_unsupported_with_the_mend() {
        let ancient = Other { ring_buffers: false, ..older() };
        let missing = preflight_of(&ancient, None);
        assert!(missing[0].what.contains("unsupported kernel"), "{missing:?}");
        assert!(missing[0].mend.contains("5.8"), "{missing:?}");
    }

    #[test]
    fn administrators_hold_what_was_split_off() {
        let root = Other { capabilities: vec![ADMIN, NET_ADMIN], tcx: true, ..older() };
        assert_eq!(preflight_of(&root, None), []);
        let nobody = Other { capabilities: vec![], tcx: true, ..older() };
        let missing = preflight_of(&nobody, None);
        assert_eq!(missing[0].what, "privilege: CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN");
    }
}
