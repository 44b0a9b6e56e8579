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

use super::{
    budget,
    bytes::{self, ETHERNET_HEADER, Head, IpPacket},
    emit::emit,
    maps::{ENDPOINTS, INTERFACE_FACTOR, INTERFACES, PACKET_COUNTERS},
    packet::{self, FIN, Other, Packet, RST, SYN},
};

/// Which way a packet goes through its interface.
#[derive(Clone, Copy)]
pub(super) enum Direction {
    Ingress,
    Egress,
}

/// What a program was called for: one packet on one interface.
///
/// No packet program may call a function, `memset` of the kernel's log included: up to Linux 6.3 the
/// verifier then compares every number on the ways that it has walked, and walks a million instructions.
pub(super) struct Call {
    skb: *mut __sk_buff,
    ifindex: u32,
}

impl Call {
    /// Counts the packet.
    #[inline(always)]
    pub(super) fn new(ctx: &impl EbpfContext, direction: Direction) -> Self {
        let skb = ctx.as_ptr().cast::<__sk_buff>();
        // SAFETY: the kernel hands the program a valid context.
        let (ifindex, segments) = unsafe { ((*skb).ifindex, (*skb).gso_segs) };
        count_interface(ifindex, segments, direction);
        Self { skb, ifindex }
    }

    /// Looks at an Ethernet frame at a TCX hook.
    ///
    /// Each way of reading goes on by itself: where two meet, the compiler reads fields that one of them
    /// never wrote, and verifiers before Linux 6.3 refuse that.
    #[inline(always)]
    pub(super) fn ethernet(&self) {
        match bytes::direct::<ETHERNET_HEADER>(self.skb) {
            Some(ip) => self.look(ip),
            None => self.look(bytes::frame(self.skb)),
        }
    }

    /// Looks at a packet of a device without link-layer header at a TCX hook.
    #[inline(always)]
    pub(super) fn bare(&self) {
        match bytes::direct::<0>(self.skb) {
            Some(ip) => self.look(ip),
            None => self.look(bytes::bare(self.skb)),
        }
    }

    /// Looks at a packet at a packet socket.
    #[inline(always)]
    pub(super) fn datagram(&self) {
        self.look(bytes::datagram(self.skb));
    }

    #[inline(always)]
    fn look(&self, ip: Result<IpPacket<impl Head>, Other>) {
        match ip.and_then(|ip| packet::parse(&ip)) {
            Ok(packet) => {
                if let Some(counters) = counters() {
                    endpoint_packet(self.skb, self.ifindex, &packet, counters);
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
fn endpoint_packet(
    skb: *mut __sk_buff,
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
    let copied = if from_endpoint {
        packet.payload_len
    } else {
        let key = FlowKey { endpoint: destination, peer: source, ifindex: u64::from(ifindex) };
        budget::request(&key, packet.ack, packet.payload_len)
    };
    let header = header(ifindex, packet, from_endpoint);
    emit(skb, header, packet.payload_offset, copied, counters);
}

/// The part of a packet's records that all of them share.
#[inline(always)]
fn header(ifindex: u32, packet: &Packet, from_endpoint: bool) -> SegmentHeader {
    SegmentHeader {
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
    }
}
