//! Entry points: what the kernel calls.

mod budget;
mod bytes;
mod emit;
mod maps;
mod packet;
mod ports;
mod retransmits;
mod segment;
mod sockets;

use aya_ebpf::{
    macros::{classifier, socket_filter, tracepoint},
    programs::{SkBuffContext, TcContext, TracePointContext},
};

use segment::{Call, Direction};

/// `TCX_NEXT`: the packet goes on to whatever else is attached. Any other value would take it away
/// from the datapath that is being measured.
const TCX_NEXT: i32 = -1;

/// Bytes of the packet that the socket keeps: none, so that nothing is queued and the packet goes on
/// untouched.
const KEEP_NOTHING: i64 = 0;
/// `pkt_type` of a packet that this host sends (`include/uapi/linux/if_packet.h`).
const PACKET_OUTGOING: u32 = 4;

#[classifier]
fn ingress_ethernet(ctx: TcContext) -> i32 {
    Call::new(&ctx, Direction::Ingress).ethernet();
    TCX_NEXT
}

#[classifier]
fn egress_ethernet(ctx: TcContext) -> i32 {
    Call::new(&ctx, Direction::Egress).ethernet();
    TCX_NEXT
}

#[classifier]
fn ingress_ip(ctx: TcContext) -> i32 {
    Call::new(&ctx, Direction::Ingress).bare();
    TCX_NEXT
}

#[classifier]
fn egress_ip(ctx: TcContext) -> i32 {
    Call::new(&ctx, Direction::Egress).bare();
    TCX_NEXT
}

/// Passes packets on and does nothing else: the bench takes what the kernel's own accounting costs
/// from it.
#[classifier]
fn pass(_: TcContext) -> i32 {
    TCX_NEXT
}

#[socket_filter]
fn packet_socket(ctx: SkBuffContext) -> i64 {
    // SAFETY: the kernel hands the program a valid context.
    let sent = unsafe { (*ctx.skb.skb).pkt_type } == PACKET_OUTGOING;
    let direction = if sent { Direction::Egress } else { Direction::Ingress };
    Call::new(&ctx, direction).datagram();
    KEEP_NOTHING
}

#[tracepoint]
fn socket_state(ctx: TracePointContext) -> u32 {
    sockets::transition(&ctx);
    0
}

#[tracepoint]
fn retransmit(ctx: TracePointContext) -> u32 {
    retransmits::sent_again(&ctx);
    0
}
