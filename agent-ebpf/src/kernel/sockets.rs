//! The tracepoint program: connections of endpoints whose socket is on this host.

use core::arch::asm;

use agent_ebpf::{
    counters::{SOCKETS_ATTEMPTED, SOCKETS_FAILED},
    endpoint::EndpointKey,
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
use super::maps::{CONNECTIONS, ENDPOINTS, KERNEL_LOG, PORTS, RECORDS, SOCKET_COUNTERS};

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

#[inline(always)]
fn address(ctx: &TracePointContext, offset: usize) -> [u8; 16] {
    let high = field::<u64>(ctx, offset).to_ne_bytes();
    let low = field::<u64>(ctx, offset + 8).to_ne_bytes();
    let mut bytes = [0; 16];
    let mut index = 0;
    while index < 8 {
        bytes[index] = high[index];
        bytes[index + 8] = low[index];
        index += 1;
    }
    bytes
}

#[inline(always)]
pub(super) fn is_endpoint_port(port: u16) -> bool {
    PORTS.get(u32::from(port)).is_some_and(|marked| *marked != 0)
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
    if !is_endpoint_port(local_port) && !is_endpoint_port(remote_port) {
        return;
    }
    if field::<u16>(ctx, PROTOCOL.offset) != PROTOCOL_TCP {
        return;
    }
    let local = address(ctx, SOURCE_ADDRESS.offset);
    let remote = address(ctx, DESTINATION_ADDRESS.offset);
    let slot = ENDPOINTS.get_ptr(EndpointKey { address: local, port: local_port, reserved: 0 });
    let peer = EndpointKey { address: remote, port: remote_port, reserved: 0 };
    if slot.is_none() && ENDPOINTS.get_ptr(peer).is_none() {
        return;
    }
    let record = SocketRecord {
        kind: KIND_SOCKET,
        old_state: field::<i32>(ctx, OLD_STATE.offset) as u8,
        new_state: field::<i32>(ctx, NEW_STATE.offset) as u8,
        at_endpoint: u8::from(slot.is_some()),
        // SAFETY: the helper has no preconditions.
        cpu: unsafe { bpf_get_smp_processor_id() },
        // SAFETY: the helper has no preconditions.
        stamp_ns: unsafe { bpf_ktime_get_ns() },
        attempt: 0,
        local,
        remote,
        local_port,
        remote_port,
        reserved: 0,
    };
    if let Some(slot) = slot {
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
