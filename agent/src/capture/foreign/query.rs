//! `BPF_PROG_QUERY` for TCX: the kernel's own list, which `tc` and netlink do not show.

use std::io;

use super::{ForeignError, Hook, failed};

/// `BPF_PROG_QUERY` and the attach types (`enum bpf_cmd` and `enum bpf_attach_type` of
/// `include/uapi/linux/bpf.h`).
const PROG_QUERY: libc::c_long = 16;
const TCX_INGRESS: u32 = 46;
const TCX_EGRESS: u32 = 47;
/// More than the kernel attaches to one hook (`BPF_MPROG_MAX` of `include/linux/bpf_mprog.h`).
const MOST_PROGRAMS: usize = 64;

/// The `query` member of `union bpf_attr` (`include/uapi/linux/bpf.h`).
#[repr(C)]
#[derive(Default)]
struct Query {
    target_ifindex: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    program_ids: u64,
    count: u32,
    reserved: u32,
    program_attach_flags: u64,
    link_ids: u64,
    link_attach_flags: u64,
    revision: u64,
}

/// Ids of the programs of a TCX hook, in the order in which they run; none on a kernel without TCX.
pub(super) fn tcx_programs(ifindex: u32, hook: Hook) -> Result<Vec<u32>, ForeignError> {
    let attach_type = if hook == Hook::TcxEgress { TCX_EGRESS } else { TCX_INGRESS };
    let mut ids = vec![0_u32; MOST_PROGRAMS];
    let mut query = Query {
        target_ifindex: ifindex,
        attach_type,
        program_ids: ids.as_mut_ptr().addr() as u64,
        count: u32::try_from(MOST_PROGRAMS).unwrap_or(0),
        ..Query::default()
    };
    // SAFETY: `query` is laid out as the kernel's attribute and lives through the call, as do `ids`,
    // whose length it says.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            PROG_QUERY,
            (&raw mut query),
            u32::try_from(size_of::<Query>()).unwrap_or(0),
        )
    };
    if result >= 0 {
        ids.truncate(usize::try_from(query.count).unwrap_or(0));
        return Ok(ids);
    }
    match io::Error::last_os_error() {
        // The attach type is unknown: this kernel has no TCX, so nothing is attached there.
        error if error.kind() == io::ErrorKind::InvalidInput => Ok(Vec::new()),
        error => Err(failed("BPF_PROG_QUERY", error)),
    }
}
