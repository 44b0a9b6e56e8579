//! The packet programs: count, filter, stamp, emit.

use agent_ebpf::{
    counters::{
        EGRESS_FRAMES, EGRESS_PACKETS, ENDPOINT_PACKETS, INGRESS_FRAMES, INGRESS_PACKETS,
        PacketCounters, UNPARSED_PACKETS,
    },
    endpoint::{EndpointKey, FlowKey, interface_slot},
    record::{KIND_SEGMENT, SegmentHeader},
};
use aya_ebpf::{
    EbpfContext,
    bindings::__sk_buff,
    helpers::{bpf_get_smp_processor_id, bpf_ktime_get_ns},
};
use aya_log_ebpf::info;

use super::{
    budget,
    bytes::{self, ETHERNET_HEADER},
    emit::{Emitter, wakeup},
    maps::{ENDPOINTS, INTERFACE_FACTOR, INTERFACES, KERNEL_LOG, PACKET_COUNTERS, SCRATCH},
    packet::{self, FIN, Other, Packet, RST, SYN},
};

/// Which way a packet goes through its interface.
#[derive(Clone, Copy)]
pub(super) enum Direction {
    Ingress,
    Egress,
}

/// Counts a packet and looks at it, if it was read as a segment.
#[inline(always)]
pub(super) fn capture(ctx: &impl EbpfContext, direction: Direction, read: Result<Packet, Other>) {
    let skb = skb(ctx);
    // SAFETY: the kernel hands the program a valid context.
    let (ifindex, segments) = unsafe { ((*skb).ifindex, (*skb).gso_segs) };
    count_interface(ifindex, segments, direction);
    match read {
        Ok(packet) => {
            if let Some(counters) = counters() {
                endpoint_packet(ctx, ifindex, &packet, counters);
            }
        }
        Err(Other::Unparsed) => {
            if let Some(counters) = counters() {
                counters[UNPARSED_PACKETS] += 1;
            }
        }
        Err(Other::Foreign) => {}
    }
}

#[inline(always)]
fn skb(ctx: &impl EbpfContext) -> *mut __sk_buff {
    ctx.as_ptr().cast()
}

/// Reads an Ethernet frame at a TCX hook.
#[inline(always)]
pub(super) fn ethernet(ctx: &impl EbpfContext) -> Result<Packet, Other> {
    let skb = skb(ctx);
    match bytes::direct::<ETHERNET_HEADER>(skb) {
        Some(ip) => packet::parse(&ip?),
        None => packet::parse(&bytes::frame(skb)?),
    }
}

/// Reads a packet of a device without link-layer header at a TCX hook.
#[inline(always)]
pub(super) fn bare(ctx: &impl EbpfContext) -> Result<Packet, Other> {
    let skb = skb(ctx);
    match bytes::direct::<0>(skb) {
        Some(ip) => packet::parse(&ip?),
        None => packet::parse(&bytes::bare(skb)?),
    }
}

/// Reads a packet at a packet socket.
#[inline(always)]
pub(super) fn datagram(ctx: &impl EbpfContext) -> Result<Packet, Other> {
    let skb = skb(ctx);
    packet::parse(&bytes::datagram(skb)?)
}

#[inline(always)]
fn counters() -> Option<&'static mut PacketCounters> {
    let counters = PACKET_COUNTERS.get_ptr_mut(0)?;
    // SAFETY: this CPU's own entry; packet programs do not interrupt each other.
    Some(unsafe { &mut *counters })
}

#[inline(always)]
fn count_interface(ifindex: u32, segments: u32, direction: Direction) {
    let slot = interface_slot(ifindex, INTERFACE_FACTOR.load());
    let Some(counters) = INTERFACES.get_ptr_mut(slot) else { return };
    let (packets, frames) = match direction {
        Direction::Ingress => (INGRESS_PACKETS, INGRESS_FRAMES),
        Direction::Egress => (EGRESS_PACKETS, EGRESS_FRAMES),
    };
    // SAFETY: this CPU's own entry.
    let counters = unsafe { &mut *counters };
    counters[packets] += 1;
    counters[frames] += u64::from(segments.max(1));
}

#[inline(always)]
fn endpoint_packet<C: EbpfContext>(
    ctx: &C,
    ifindex: u32,
    packet: &Packet,
    counters: &mut PacketCounters,
) {
    let source = EndpointKey::new(packet.source, packet.source_port);
    let destination = EndpointKey::new(packet.destination, packet.destination_port);
    // Of the two ports mostly one is an endpoint's: the other address need not be looked up.
    let from_endpoint = packet.from_endpoint_port && ENDPOINTS.get_ptr(source).is_some();
    if !from_endpoint && ENDPOINTS.get_ptr(destination).is_none() {
        return;
    }
    counters[ENDPOINT_PACKETS] += 1;
    let control = packet.flags & (SYN | FIN | RST);
    // A bare acknowledgement is no event: its number rides on the next payload.
    if packet.payload_len == 0 && control == 0 {
        return;
    }
    if KERNEL_LOG.load() != 0 && control != 0 {
        info!(
            ctx,
            "port {} to {}: flags {}", packet.source_port, packet.destination_port, packet.flags
        );
    }
    let copied = if from_endpoint {
        packet.payload_len
    } else {
        let key = FlowKey { endpoint: destination, peer: source, ifindex, reserved: 0 };
        budget::request(&key, packet.ack, packet.payload_len)
    };
    emit(skb(ctx), ifindex, packet, from_endpoint, copied, counters);
}

#[inline(always)]
fn emit(
    skb: *mut __sk_buff,
    ifindex: u32,
    packet: &Packet,
    from_endpoint: bool,
    copied: u32,
    counters: &mut PacketCounters,
) {
    let Some(scratch) = SCRATCH.get_ptr_mut(0) else { return };
    // SAFETY: this CPU's own entry; packet programs do not interrupt each other.
    let scratch = unsafe { &mut *scratch };
    scratch.header = SegmentHeader {
        kind: KIND_SEGMENT,
        tcp_flags: packet.flags,
        from_endpoint: u8::from(from_endpoint),
        reserved: 0,
        ifindex,
        // SAFETY: the helper has no preconditions.
        stamp_ns: unsafe { bpf_ktime_get_ns() },
        attempt: 0,
        source: packet.source,
        destination: packet.destination,
        source_port: packet.source_port,
        destination_port: packet.destination_port,
        // SAFETY: the helper has no preconditions.
        cpu: unsafe { bpf_get_smp_processor_id() },
        seq: packet.seq,
        ack: packet.ack,
        payload_len: packet.payload_len,
        piece_offset: 0,
        captured_len: 0,
        reserved2: 0,
    };
    let payload_offset = packet.payload_offset;
    Emitter { packet: skb, scratch, counters, payload_offset, flags: wakeup() }.segment(copied);
}
