//! The tracepoint program: connections of endpoints whose socket is on this host.

use core::arch::asm;

use agent_ebpf::{
    counters::{SOCKETS_ATTEMPTED, SOCKETS_FAILED},
    endpoint::{Address, EndpointKey},
    record::{KIND_SOCKET, SocketRecord},
    tracepoint::socket_state::{
        DESTINATION_ADDRESS, DESTINATION_PORT, NEW_STATE, OLD_STATE, PROTOCOL, SOURCE_ADDRESS,
        SOURCE_PORT,
    },
};
use aya_ebpf::{
    EbpfContext as _,
    helpers::{bpf_get_smp_processor_id, bpf_ktime_get_ns},
    programs::TracePointContext,
};
use aya_log_ebpf::info;

use super::emit::wakeup;
use super::maps::{CONNECTIONS, ENDPOINTS, KERNEL_LOG, RECORDS, SOCKET_COUNTERS};
use super::ports::is_endpoint_port;

const PROTOCOL_TCP: u16 = 6;

/// States of a connection that exists: ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK,
/// CLOSING (`include/net/tcp_states.h`). `TIME_WAIT` is a leftover, not a connection.
const CONNECTED: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

/// A field of the tracepoint's record. Constant offsets only: the verifier refuses a context
/// pointer that was changed at run time. User space has compared them with the `format` file.
#[inline(always)]
pub(super) fn field<T: Copy>(ctx: &TracePointContext, offset: usize) -> T {
    // SAFETY: every offset is aligned for its type and lies within the record, as the verifier
    // checks against the tracepoint's size.
    unsafe { ctx.as_ptr().add(offset).cast::<T>().read_volatile() }
}

/// The two ends of a tracepoint's socket, of which one is a configured endpoint.
pub(super) struct Ends {
    pub(super) local: EndpointKey,
    pub(super) remote: EndpointKey,
    /// Connection slot of the local end, if that is the endpoint.
    pub(super) slot: Option<*const u32>,
}

impl Ends {
    /// Looks up whether one of the addresses is an endpoint's; they are read only if a port is one.
    #[inline(always)]
    pub(super) fn of_endpoint(
        local_port: u16,
        remote_port: u16,
        addresses: impl FnOnce() -> Option<(Address, Address)>,
    ) -> Option<Self> {
        if !is_endpoint_port(local_port) && !is_endpoint_port(remote_port) {
            return None;
        }
        let (local, remote) = addresses()?;
        let local = EndpointKey::new(local, local_port);
        let remote = EndpointKey::new(remote, remote_port);
        let slot = ENDPOINTS.get_ptr(local);
        if slot.is_none() && ENDPOINTS.get_ptr(remote).is_none() {
            return None;
        }
        Some(Self { local, remote, slot })
    }

    /// A record about this socket, stamped now.
    #[inline(always)]
    pub(super) fn record(&self, kind: u8, old_state: u8, new_state: u8) -> SocketRecord {
        SocketRecord {
            kind,
            old_state,
            new_state,
            at_endpoint: u8::from(self.slot.is_some()),
            // SAFETY: the helper has no preconditions.
            cpu: unsafe { bpf_get_smp_processor_id() },
            // SAFETY: the helper has no preconditions.
            stamp_ns: unsafe { bpf_ktime_get_ns() },
            attempt: 0,
            local: self.local.address,
            remote: self.remote.address,
            local_port: self.local.port as u16,
            remote_port: self.remote.port as u16,
            reserved: 0,
        }
    }
}

/// An address at a multiple of 8.
#[inline(always)]
fn address(ctx: &TracePointContext, offset: usize) -> Address {
    [field(ctx, offset), field(ctx, offset + 8)]
}

#[inline(always)]
fn is_connected(state: u8) -> bool {
    CONNECTED >> (u32::from(state) & 31) & 1 != 0
}

/// Looks at one change of a socket's state.
#[inline(always)]
pub(super) fn transition(ctx: &TracePointContext) {
    let local_port = field::<u16>(ctx, SOURCE_PORT.offset);
    let remote_port = field::<u16>(ctx, DESTINATION_PORT.offset);
    let ends = Ends::of_endpoint(local_port, remote_port, || {
        let is_tcp = field::<u16>(ctx, PROTOCOL.offset) == PROTOCOL_TCP;
        is_tcp.then(|| {
            (address(ctx, SOURCE_ADDRESS.offset), address(ctx, DESTINATION_ADDRESS.offset))
        })
    });
    let Some(ends) = ends else { return };
    let state = |offset| field::<i32>(ctx, offset) as u8;
    let record = ends.record(KIND_SOCKET, state(OLD_STATE.offset), state(NEW_STATE.offset));
    if let Some(slot) = ends.slot {
        // SAFETY: the value of a preallocated map is valid memory of this type.
        count_connection(unsafe { *slot }, &record);
    }
    if KERNEL_LOG.load() != 0 {
        info!(
            ctx,
            "socket {} to {}: state {} to {}",
            local_port,
            remote_port,
            record.old_state,
            record.new_state
        );
    }
    write(record);
}

/// Only what enters or leaves the connected states counts, so that no table of sockets is needed
/// that could fill up. Atomic: sockets of one endpoint change on every CPU.
#[inline(always)]
fn count_connection(slot: u32, record: &SocketRecord) {
    let change: i64 = match (is_connected(record.old_state), is_connected(record.new_state)) {
        (false, true) => 1,
        (true, false) => -1,
        _ => return,
    };
    if let Some(connections) = CONNECTIONS.get_ptr_mut(slot) {
        // `core` has no atomic addition for this target, the instruction set has.
        // SAFETY: an array map's value is valid, aligned memory that lives as long as the program.
        unsafe { asm!("lock *(u64 *)({0} + 0) += {1}", in(reg) connections, in(reg) change) };
    }
}

/// Writes a record; the kernel never nests tracepoint programs on a CPU.
#[inline(always)]
pub(super) fn write(mut record: SocketRecord) {
    let Some(counters) = SOCKET_COUNTERS.get_ptr_mut(0) else { return };
    // SAFETY: this CPU's own entry; the kernel does not nest tracepoint programs on a CPU.
    let counters = unsafe { &mut *counters };
    record.attempt = counters[SOCKETS_ATTEMPTED];
    counters[SOCKETS_ATTEMPTED] += 1;
    if RECORDS.output::<SocketRecord>(record, wakeup()).is_err() {
        counters[SOCKETS_FAILED] += 1;
    }
}
