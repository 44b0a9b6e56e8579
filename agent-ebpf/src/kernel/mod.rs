//! Entry points: what the kernel calls.

mod budget;
mod emit;
mod maps;
mod packet;
mod segment;
mod sockets;

use aya_ebpf::{
    macros::{classifier, tracepoint},
    programs::{TcContext, TracePointContext},
};

use segment::Direction;

/// `TCX_NEXT`: the packet goes on to whatever else is attached. Any other value would take it away
/// from the datapath that is being measured.
const TCX_NEXT: i32 = -1;

/// Bytes before the IP header on Ethernet and loopback (RFC 894).
const ETHERNET_HEADER: u32 = 14;
/// Devices without a link-layer header, such as tun.
const NO_HEADER: u32 = 0;

#[classifier]
fn ingress_ethernet(ctx: TcContext) -> i32 {
    segment::capture(&ctx, ETHERNET_HEADER, Direction::Ingress);
    TCX_NEXT
}

#[classifier]
fn egress_ethernet(ctx: TcContext) -> i32 {
    segment::capture(&ctx, ETHERNET_HEADER, Direction::Egress);
    TCX_NEXT
}

#[classifier]
fn ingress_ip(ctx: TcContext) -> i32 {
    segment::capture(&ctx, NO_HEADER, Direction::Ingress);
    TCX_NEXT
}

#[classifier]
fn egress_ip(ctx: TcContext) -> i32 {
    segment::capture(&ctx, NO_HEADER, Direction::Egress);
    TCX_NEXT
}

#[tracepoint]
fn socket_state(ctx: TracePointContext) -> u32 {
    sockets::transition(&ctx);
    0
}
