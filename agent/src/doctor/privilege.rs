//! Rows about what this process may do.

use caps::Capability::{
    self, CAP_BPF, CAP_DAC_READ_SEARCH, CAP_NET_ADMIN, CAP_NET_RAW, CAP_PERFMON, CAP_SYS_ADMIN,
    CAP_SYS_PTRACE,
};

use super::{Facts, Row, State};
use crate::capture::tcx::Method;

/// Every capability the agent can use, and what for.
const USES: [(Capability, &str); 7] = [
    (CAP_BPF, "load programs"),
    (CAP_PERFMON, "attach to tracepoints"),
    (CAP_NET_ADMIN, "attach to interfaces"),
    (CAP_DAC_READ_SEARCH, "read tracefs, which is root's"),
    (CAP_NET_RAW, "open packet sockets for socket-filter"),
    (CAP_SYS_ADMIN, "enter other network namespaces, where containers serve endpoints"),
    (CAP_SYS_PTRACE, "find other network namespaces by their processes"),
];

pub(super) fn rows(facts: &Facts, method: Option<Method>) -> Vec<Row> {
    USES.iter().map(|(capability, use_of)| row(facts, method, *capability, use_of)).collect()
}

fn row(facts: &Facts, method: Option<Method>, capability: Capability, use_of: &str) -> Row {
    let check = format!("capability.{capability}");
    let held = |it: Capability| facts.privileges.effective.contains(&it);
    if held(capability) {
        return Row::ok(check, format!("held, to {use_of}"));
    }
    match need(facts, method, capability) {
        None => Row::ok(check, "not held, and not needed here"),
        Some(state) => Row::bad(
            state,
            check,
            format!("not held; it is needed to {use_of}"),
            mend(facts, capability),
        ),
    }
}

/// What lacking a capability means; `None` where something else stands in for it.
fn need(facts: &Facts, method: Option<Method>, capability: Capability) -> Option<State> {
    let administrator = facts.privileges.effective.contains(&CAP_SYS_ADMIN);
    match capability {
        // CAP_SYS_ADMIN includes the two that were split from it (capabilities(7)).
        CAP_BPF | CAP_PERFMON => (!administrator).then_some(State::Fail),
        CAP_DAC_READ_SEARCH => {
            let reads = facts.privileges.root || facts.socket_states.is_ok();
            (!reads).then_some(State::Fail)
        }
        CAP_NET_RAW => match method {
            Some(Method::Tcx) => None,
            Some(Method::SocketFilter) => Some(State::Fail),
            None => Some(State::Unknown),
        },
        CAP_SYS_ADMIN | CAP_SYS_PTRACE => Some(State::Warn),
        _ => Some(State::Fail),
    }
}

/// Where a capability got lost decides what gives it.
fn mend(facts: &Facts, capability: Capability) -> String {
    let name = capability.to_string();
    let short = name.trim_start_matches("CAP_");
    if facts.privileges.permitted.contains(&capability) {
        return format!(
            "it is permitted and not in force: give it with +ep (sudo setcap {}+ep \
             \"$(command -v goodput-agent)\")",
            setcap(capability)
        );
    }
    if !facts.privileges.bounding.contains(&capability) {
        return format!(
            "whatever started this shell withholds it: docker run --cap-add {short}, Kubernetes \
             securityContext.capabilities.add [{short}], or systemd CapabilityBoundingSet and \
             AmbientCapabilities with {name}"
        );
    }
    format!(
        "run it as root, or: sudo setcap {}+ep \"$(command -v goodput-agent)\"; in a systemd unit \
         AmbientCapabilities (deploy/systemd/goodput-agent.service)",
        setcap(capability)
    )
}

/// `setcap` replaces what a file had: the line must hold them all.
fn setcap(capability: Capability) -> String {
    let whole = [CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN, CAP_NET_RAW, CAP_DAC_READ_SEARCH];
    let more = [CAP_SYS_ADMIN, CAP_SYS_PTRACE].into_iter();
    let more = more.filter(|_| matches!(capability, CAP_SYS_ADMIN | CAP_SYS_PTRACE));
    let names: Vec<_> =
        whole.into_iter().chain(more).map(|it| it.to_string().to_lowercase()).collect();
    names.join(",")
}
