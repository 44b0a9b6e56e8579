//! Captures built byte by byte, and what must be read from them.

mod links;
mod property;
mod vectors;

use super::write::{StampUnit, TcpSegment, Writer, link_frame};
use super::*;
use crate::testing::{Packet as Scripted, endpoint};

fn tcp(packet: &Scripted) -> TcpSegment {
    let (source, destination) =
        if packet.from_endpoint { (endpoint(), packet.peer) } else { (packet.peer, endpoint()) };
    TcpSegment {
        source,
        destination,
        seq: packet.seq,
        ack: packet.ack,
        flags: packet.flags,
        payload: packet.payload.clone(),
    }
}

fn ethernet(packet: &Scripted) -> Vec<u8> {
    link_frame(LinkType::ETHERNET, &tcp(packet).ip())
}

/// A nanosecond capture of `packets` on Ethernet.
fn pcap(order: Order, packets: &[Scripted]) -> Vec<u8> {
    let mut writer = Writer::pcap(order, StampUnit::Nano, LinkType::ETHERNET, 0);
    packets.iter().for_each(|packet| writer.frame(0, packet.stamp, &ethernet(packet)));
    writer.into_bytes()
}

/// The same in the block format, with blocks in between that nobody knows.
fn pcapng(order: Order, packets: &[Scripted]) -> Vec<u8> {
    let mut writer = Writer::pcapng(order, StampUnit::Nano, 0);
    writer.interface(LinkType::ETHERNET, &[(2, b"eth0")]);
    for packet in packets {
        writer.block(0x0bad_0bad, &[1, 2, 3, 4, 5]);
        writer.frame(0, packet.stamp, &ethernet(packet));
    }
    writer.into_bytes()
}

/// Stamp, interface name and bytes of a frame.
type Seen = (Option<u64>, String, Vec<u8>);

/// Every frame, and how reading ended.
fn frames(bytes: &[u8]) -> (Vec<Seen>, Result<(), Stop>) {
    let mut reader = Reader::open(bytes).unwrap();
    let mut frames = Vec::new();
    loop {
        match reader.advance() {
            Ok(true) => {}
            Ok(false) => return (frames, Ok(())),
            Err(stop) => return (frames, Err(stop)),
        }
        let frame = reader.frame().unwrap();
        let name = reader.interface_name(frame.interface);
        frames.push((frame.stamp.map(|it| it.get()), name, frame.data.to_vec()));
    }
}
