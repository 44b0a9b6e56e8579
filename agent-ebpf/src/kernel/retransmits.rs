//! The tracepoint program for segments that local sockets send again.

use agent_ebpf::{
    endpoint::Address,
    record::KIND_RETRANSMIT,
    tracepoint::retransmit::{
        DESTINATION_ADDRESS, DESTINATION_PORT, SOURCE_ADDRESS, SOURCE_PORT, STATE,
    },
};
use aya_ebpf::programs::TracePointContext;

use super::sockets::{Ends, field, write};

/// The addresses lie at odd multiples of 2, and a load must be aligned.
#[inline(always)]
fn address(ctx: &TracePointContext, offset: usize) -> Address {
    [0, 8].map(|start| {
        let quarter = |at| u64::from(field::<u16>(ctx, offset + start + at)) << (at * 8);
        quarter(0) | quarter(2) | quarter(4) | quarter(6)
    })
}

/// Looks at one retransmission.
#[inline(always)]
pub(super) fn sent_again(ctx: &TracePointContext) {
    let local_port = field::<u16>(ctx, SOURCE_PORT.offset);
    let remote_port = field::<u16>(ctx, DESTINATION_PORT.offset);
    let ends = Ends::of_endpoint(local_port, remote_port, || {
        Some((address(ctx, SOURCE_ADDRESS.offset), address(ctx, DESTINATION_ADDRESS.offset)))
    });
    if let Some(ends) = ends {
        let state = field::<i32>(ctx, STATE.offset) as u8;
        write(ends.record(KIND_RETRANSMIT, state, state));
    }
}
