//! Counters that the kernel programs keep, summed over CPUs.

use std::fs;

use agent_ebpf::counters::{
    EGRESS_FRAMES, EGRESS_PACKETS, ENDPOINT_PACKETS, INGRESS_FRAMES, INGRESS_PACKETS,
    INTERFACE_SLOTS, PACKET_SLOTS, SEGMENTS_ATTEMPTED, SEGMENTS_FAILED, SOCKET_SLOTS,
    SOCKETS_ATTEMPTED, SOCKETS_FAILED, UNPARSED_PACKETS, UNREADABLE_PIECES,
};
use aya::maps::{MapError, PerCpuValues};

use super::config::Interface;
use super::load::{Maps, program_error};
use crate::capture::{CaptureCounters, CaptureError, ClassCounters};

/// Records taken out of the ring so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Consumed {
    pub(super) segments: u64,
    pub(super) sockets: u64,
}

/// What went through one interface since it was attached, next to what the interface itself counts.
///
/// A later program in front of ours that swallows packets gives no error: the only sign is that the
/// interface counts more packets than the programs saw.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct InterfaceView {
    /// Name of the interface.
    pub name: String,
    /// Its index.
    pub ifindex: u32,
    /// On loopback only ingress is watched: every packet passes both, and would count twice.
    pub loopback: bool,
    /// Times the ingress program ran.
    pub ingress_packets: u64,
    /// Times the egress program ran; 0 on loopback.
    pub egress_packets: u64,
    /// Wire packets behind `ingress_packets` (a merged packet counts its segments).
    pub ingress_frames: u64,
    /// Wire packets behind `egress_packets`.
    pub egress_frames: u64,
    /// Growth of the interface's `rx_packets` since the programs were attached; `None` when
    /// `/proc/thread-self/net/dev` can't be read.
    pub rx_packets: Option<u64>,
}

impl InterfaceView {
    /// Received packets that the interface counted and the programs never saw: above 0, somebody
    /// takes packets away before they reach the agent. At rest this is exact; in full flow it may
    /// be a few packets off, since a packet is counted by the interface before the programs run.
    ///
    /// A network card counts wire packets, before they are merged; loopback counts packets as they
    /// are, up to 64 KiB.
    #[must_use]
    pub fn preempted(&self) -> u64 {
        let seen = if self.loopback { self.ingress_packets } else { self.ingress_frames };
        self.rx_packets.unwrap_or(0).saturating_sub(seen)
    }
}

fn sum<const N: usize>(values: &PerCpuValues<[u64; N]>) -> [u64; N] {
    let mut total = [0_u64; N];
    for cpu in values.iter() {
        for (sum, count) in total.iter_mut().zip(cpu) {
            *sum = sum.wrapping_add(*count);
        }
    }
    total
}

fn reading(error: &MapError) -> CaptureError {
    program_error("reading counters", error)
}

/// Sums of one interface.
fn interface_slots(maps: &Maps, slot: u32) -> Result<[u64; INTERFACE_SLOTS], CaptureError> {
    maps.interfaces.get(&slot, 0).map(|it| sum(&it)).map_err(|error| reading(&error))
}

/// `rx_packets` of every interface in this thread's network namespace, by name.
fn rx_packets(table: &str, name: &str) -> Option<u64> {
    table.lines().find_map(|line| {
        let (device, counts) = line.split_once(':')?;
        (device.trim() == name).then(|| counts.split_whitespace().nth(1)?.parse().ok())?
    })
}

/// Reads [`rx_packets`] now.
pub(super) fn rx_now(interface: &Interface) -> Option<u64> {
    let table = fs::read_to_string("/proc/thread-self/net/dev").ok()?;
    rx_packets(&table, &interface.name)
}

/// What went through `interface`; `baseline` is its `rx_packets` right after it was attached.
pub(super) fn interface_view(
    maps: &Maps,
    interface: &Interface,
    baseline: Option<u64>,
) -> Result<InterfaceView, CaptureError> {
    // The interface's own count first: what arrives in between is then seen, not missed.
    let rx = rx_now(interface).zip(baseline).map(|(now, then)| now.wrapping_sub(then));
    let slots = interface_slots(maps, interface.slot)?;
    Ok(InterfaceView {
        name: interface.name.clone(),
        ifindex: interface.index,
        loopback: interface.loopback,
        ingress_packets: slots[INGRESS_PACKETS],
        egress_packets: slots[EGRESS_PACKETS],
        ingress_frames: slots[INGRESS_FRAMES],
        egress_frames: slots[EGRESS_FRAMES],
        rx_packets: rx,
    })
}

/// All counters since the source was opened.
pub(super) fn read(
    maps: &Maps,
    interfaces: &[Interface],
    consumed: Consumed,
) -> Result<CaptureCounters, CaptureError> {
    let packet: [u64; PACKET_SLOTS] =
        maps.packet_counters.get(&0, 0).map(|it| sum(&it)).map_err(|error| reading(&error))?;
    let socket: [u64; SOCKET_SLOTS] =
        maps.socket_counters.get(&0, 0).map(|it| sum(&it)).map_err(|error| reading(&error))?;
    let mut packets = 0;
    for interface in interfaces {
        let slots = interface_slots(maps, interface.slot)?;
        packets += slots[INGRESS_PACKETS] + slots[EGRESS_PACKETS];
    }
    Ok(CaptureCounters {
        segments: ClassCounters {
            attempted: packet[SEGMENTS_ATTEMPTED],
            failed: packet[SEGMENTS_FAILED],
            consumed: consumed.segments,
        },
        sockets: ClassCounters {
            attempted: socket[SOCKETS_ATTEMPTED],
            failed: socket[SOCKETS_FAILED],
            consumed: consumed.sockets,
        },
        endpoint_packets: packet[ENDPOINT_PACKETS],
        packets,
        unparsed_packets: packet[UNPARSED_PACKETS] + packet[UNREADABLE_PIECES],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Inter-|   Receive                            |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n    \
        lo: 1234567    4321    0    0    0     0          0         0  1234567    4321\n  \
        eth0:99 7    0    0    0     0          0         0  1 2\n";

    #[test]
    fn received_packets_are_read_by_name_even_without_a_blank_after_the_colon() {
        assert_eq!(rx_packets(TABLE, "lo"), Some(4321));
        assert_eq!(rx_packets(TABLE, "eth0"), Some(7));
        assert_eq!(rx_packets(TABLE, "eth"), None);
    }

    #[test]
    fn sums_run_over_every_cpu_and_slot() {
        let Ok(cpus) = aya::util::nr_cpus() else { panic!("no CPU count") };
        let values = PerCpuValues::try_from(vec![[1_u64, 10]; cpus]).unwrap();
        let cpus = u64::try_from(cpus).unwrap();
        assert_eq!(sum(&values), [cpus, 10 * cpus]);
    }
}
