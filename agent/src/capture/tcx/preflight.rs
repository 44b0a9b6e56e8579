//! What this host lacks for live capture, as data.

use std::io;

use aya::programs::{ProgramError, SchedClassifier, TcAttachType};
use caps::{CapSet, Capability};

use super::tracefs;

/// What gives the binary what it needs.
pub(super) const PRIVILEGE_MEND: &str = "run it as root (sudo goodput-agent run ...), or give it \
    its capabilities: sudo setcap \
    cap_bpf,cap_perfmon,cap_net_admin,cap_dac_read_search+ep \"$(command -v goodput-agent)\"";
/// What a kernel without TCX links needs.
pub(super) const TCX_MEND: &str = "TCX links need Linux 6.6 or later (or a distribution kernel \
    that has them); read a capture file instead: goodput-agent read FILE";

/// One thing that is missing, and the line that gives it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Missing {
    /// What is missing.
    pub what: String,
    /// What the operator can do about it.
    pub mend: String,
}

/// Everything that would keep [`TcxSource::open`](super::TcxSource::open) from working here; empty
/// when nothing would. Changes nothing on the host.
#[must_use]
pub fn preflight() -> Vec<Missing> {
    let mut missing: Vec<_> = missing_capabilities().into_iter().collect();
    let privileged = missing.is_empty();
    missing.extend(tracefs::obstacle(holds(Capability::CAP_SYS_ADMIN)).map(|error| Missing {
        what: "the tracepoint sock:inet_sock_set_state".to_owned(),
        mend: error.to_string(),
    }));
    // Without the privilege to ask, the kernel's answer says nothing about TCX.
    if privileged {
        missing.extend(missing_tcx());
    }
    missing
}

/// Whether live capture would work here.
#[must_use]
pub fn supported() -> bool {
    preflight().is_empty()
}

fn holds(capability: Capability) -> bool {
    caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false)
}

/// `CAP_SYS_ADMIN` includes the two that were split from it (capabilities(7)).
fn missing_capabilities() -> Option<Missing> {
    let admin = holds(Capability::CAP_SYS_ADMIN);
    let lacking: Vec<_> = [
        (Capability::CAP_BPF, admin),
        (Capability::CAP_PERFMON, admin),
        (Capability::CAP_NET_ADMIN, false),
    ]
    .into_iter()
    .filter(|(capability, included)| !included && !holds(*capability))
    .map(|(capability, _)| capability.to_string())
    .collect();
    (!lacking.is_empty()).then(|| Missing {
        what: format!("privilege: {}", lacking.join(", ")),
        mend: PRIVILEGE_MEND.to_owned(),
    })
}

/// Asks for the programs on `lo` rather than for the kernel's version: distributions have added TCX
/// to older ones.
fn missing_tcx() -> Option<Missing> {
    let error = SchedClassifier::query_tcx("lo", TcAttachType::Ingress).err()?;
    let unknown = matches!(
        &error,
        ProgramError::SyscallError(call)
            if call.call == "bpf_prog_query"
                && call.io_error.kind() == io::ErrorKind::InvalidInput
    );
    // Any other failure comes after the query itself: looking at somebody else's program.
    unknown
        .then(|| Missing { what: "TCX links in this kernel".to_owned(), mend: TCX_MEND.to_owned() })
}
