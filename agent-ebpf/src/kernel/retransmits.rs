//! The tracepoint program for segments that local sockets send again.

use agent_ebpf::{
    endpoint::EndpointKey,
    record::{KIND_RETRANSMIT, SocketRecord},
    tracepoint::retransmit::{
        DESTINATION_ADDRESS, DESTINATION_PORT, SOURCE_ADDRESS, SOURCE_PORT, STATE,
    },
};
use aya_ebpf::{
    helpers::{bpf_get_smp_processor_id, bpf_ktime_get_ns},
    programs::TracePointContext,
};

use super::maps::ENDPOINTS;
use super::sockets::{field, is_endpoint_port, write};

/// The addresses lie at odd multiples of 2, and a load must be aligned.
#[inline(always)]
fn address(ctx: &TracePointContext, offset: usize) -> [u8; 16] {
    let mut bytes = [0; 16];
    let mut index = 0;
    while index < 16 {
        let [first, second] = field::<u16>(ctx, offset + index).to_ne_bytes();
        bytes[index] = first;
        bytes[index + 1] = second;
        index += 2;
    }
    bytes
}

/// Looks at one retransmission.
#[inline(always)]
pub(super) fn sent_again(ctx: &TracePointContext) {
    let local_port = field::<u16>(ctx, SOURCE_PORT.offset);
    let remote_port = field::<u16>(ctx, DESTINATION_PORT.offset);
    if !is_endpoint_port(local_port) && !is_endpoint_port(remote_port) {
        return;
    }
    let local = address(ctx, SOURCE_ADDRESS.offset);
    let remote = address(ctx, DESTINATION_ADDRESS.offset);
    let is_endpoint =
        |address, port| ENDPOINTS.get_ptr(EndpointKey { address, port, reserved: 0 }).is_some();
    let at_endpoint = is_endpoint(local, local_port);
    if !at_endpoint && !is_endpoint(remote, remote_port) {
        return;
    }
    let state = field::<i32>(ctx, STATE.offset) as u8;
    write(SocketRecord {
        kind: KIND_RETRANSMIT,
        old_state: state,
        new_state: state,
        at_endpoint: u8::from(at_endpoint),
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
    });
}
