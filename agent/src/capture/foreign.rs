//! Programs of others on an interface: read, never changed.

mod netlink;
mod query;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

/// Where a program sits on an interface, in the order in which a received packet meets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    /// XDP: before every other hook; what it drops or redirects nobody else sees.
    Xdp,
    /// TCX on ingress.
    TcxIngress,
    /// A filter of a `clsact` or `ingress` qdisc on ingress; after TCX.
    TcIngress,
    /// TCX on egress.
    TcxEgress,
    /// A filter of a `clsact` qdisc on egress; after TCX.
    TcEgress,
}

/// A program that this process did not attach.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ForeignProgram {
    /// Where it sits.
    pub hook: Hook,
    /// The kernel's id of the program; `None` for a classic filter without one.
    pub id: Option<u32>,
    /// Its name; `None` without the privilege to ask (`CAP_SYS_ADMIN`).
    pub name: Option<String>,
    /// Place among the programs of its hook, from 0, this process's own counted: the order of TCX
    /// programs, of filters by priority.
    pub position: u32,
    /// Priority of a `tc` filter: lower runs first.
    pub priority: Option<u16>,
    /// Handle of a `tc` filter. LoxiLB uses handle 1 at priority 1.
    pub handle: Option<u32>,
    /// Whether it sees packets before this process's own program on the same interface and direction,
    /// and so can take them away. `None` when this process has none there.
    pub before_agent: Option<bool>,
}

/// The programs of an interface can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// TCX programs are shown to `CAP_NET_ADMIN` only; the agent drops it after attaching.
    #[error("{call}: {source}; run goodput-agent doctor as root or with CAP_NET_ADMIN")]
    Refused {
        /// What was tried.
        call: &'static str,
        /// Why it was refused.
        source: io::Error,
    },
    /// Anything else.
    #[error("{call}: {source}; check that the interface exists (ip link)")]
    System {
        /// What was tried.
        call: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

/// A failed call of the kernel.
fn failed(call: &'static str, source: io::Error) -> ForeignError {
    if source.kind() == io::ErrorKind::PermissionDenied {
        return ForeignError::Refused { call, source };
    }
    ForeignError::System { call, source }
}

/// Lists the TC, TCX and XDP programs on interface `ifindex` of this thread's network namespace that
/// this process did not attach, in the order of [`Hook`] and then of their place.
///
/// # Errors
/// Without `CAP_NET_ADMIN` on a kernel with TCX, or when the interface is gone.
pub fn list(ifindex: u32) -> Result<Vec<ForeignProgram>, ForeignError> {
    list_except(ifindex, &own_programs())
}

/// As [`list`], for a process that holds programs of others: `own` names the agent's by id.
///
/// # Errors
/// As [`list`].
pub fn list_except(ifindex: u32, own: &BTreeSet<u32>) -> Result<Vec<ForeignProgram>, ForeignError> {
    let mut programs = Vec::new();
    let mut agent_on = BTreeSet::new();
    for hook in [Hook::TcxIngress, Hook::TcxEgress] {
        let ids = query::tcx_programs(ifindex, hook)?;
        if ids.iter().any(|id| own.contains(id)) {
            agent_on.insert(hook);
        }
        programs.extend(tcx(hook, &ids, own));
    }
    for found in netlink::filters(ifindex)?.into_iter().chain(netlink::xdp(ifindex)?) {
        programs.push(ForeignProgram { before_agent: before(found.hook, &agent_on), ..found });
    }
    programs.retain(|program| program.id.is_none_or(|id| !own.contains(&id)));
    name(&mut programs);
    programs.sort_by_key(|program| (program.hook, program.position));
    Ok(programs)
}

/// TCX runs before `tc`; XDP before both, on ingress.
fn before(hook: Hook, agent_on: &BTreeSet<Hook>) -> Option<bool> {
    match hook {
        Hook::Xdp => agent_on.contains(&Hook::TcxIngress).then_some(true),
        Hook::TcIngress => agent_on.contains(&Hook::TcxIngress).then_some(false),
        Hook::TcEgress => agent_on.contains(&Hook::TcxEgress).then_some(false),
        Hook::TcxIngress | Hook::TcxEgress => None,
    }
}

fn tcx(hook: Hook, ids: &[u32], own: &BTreeSet<u32>) -> Vec<ForeignProgram> {
    let agent = ids.iter().position(|id| own.contains(id));
    let program = |(position, id): (usize, &u32)| ForeignProgram {
        hook,
        id: Some(*id),
        name: None,
        position: u32::try_from(position).unwrap_or(u32::MAX),
        priority: None,
        handle: None,
        before_agent: agent.map(|agent| position < agent),
    };
    ids.iter().enumerate().map(program).collect()
}

/// Ids of the programs that this process's file descriptors hold (proc_pid_fdinfo(5)).
fn own_programs() -> BTreeSet<u32> {
    let Ok(entries) = fs::read_dir("/proc/self/fdinfo") else { return BTreeSet::new() };
    let texts = entries.flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok());
    texts.flat_map(|text| program_ids(&text)).collect()
}

fn program_ids(fdinfo: &str) -> Vec<u32> {
    let values = fdinfo.lines().filter_map(|line| line.strip_prefix("prog_id:"));
    values.filter_map(|value| value.trim().parse().ok()).collect()
}

/// Names are an extra: the kernel shows them to `CAP_SYS_ADMIN` only.
fn name(programs: &mut [ForeignProgram]) {
    if programs.is_empty() {
        return;
    }
    // A refusal ends the walk.
    let loaded = aya::programs::loaded_programs().map_while(Result::ok);
    let names: BTreeMap<u32, String> =
        loaded.filter_map(|info| Some((info.id(), info.name_as_str()?.to_owned()))).collect();
    let named = |id: &u32| names.get(id).filter(|name| !name.is_empty()).cloned();
    for program in programs {
        let known = program.id.as_ref().and_then(named);
        program.name = known.or(program.name.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_in_front_of_the_agents_own_are_told_from_those_behind() {
        let found = tcx(Hook::TcxIngress, &[7, 8, 9], &BTreeSet::from([8]));
        let places: Vec<_> = found.iter().map(|it| (it.id, it.before_agent)).collect();
        let expected = [(Some(7), Some(true)), (Some(8), Some(false)), (Some(9), Some(false))];
        assert_eq!(places, expected);
        assert!(tcx(Hook::TcxIngress, &[7], &BTreeSet::new())[0].before_agent.is_none());
    }

    #[test]
    fn program_ids_are_read_from_descriptors_of_programs_and_of_links() {
        let link =
            "pos:\t0\nlink_type:\ttcx\nlink_id:\t4\nprog_tag:\tab\nprog_id:\t61\nifindex:\t2\n";
        assert_eq!(program_ids(link), [61]);
        assert_eq!(program_ids("pos:\t0\nflags:\t02\n"), [0_u32; 0]);
    }

    #[test]
    fn an_interface_that_does_not_exist_is_an_error_with_a_mend() {
        let error = list(u32::MAX / 2).unwrap_err().to_string();
        assert!(error.contains("; "), "{error}");
    }
}
