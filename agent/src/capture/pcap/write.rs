//! Writes captures, both formats, any byte order: for tests, and for making examples.

use std::net::{IpAddr, SocketAddr};

use super::link::LinkType;
use super::order::Order;

/// A TCP segment to be put into a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSegment {
    /// Sender.
    pub source: SocketAddr,
    /// Receiver, of the same address family.
    pub destination: SocketAddr,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// TCP flag bits as on the wire.
    pub flags: u8,
    /// Payload.
    pub payload: Vec<u8>,
}

impl TcpSegment {
    /// The IP packet, checksums left 0. A packet too large for the length field has 0 there.
    #[must_use]
    pub fn ip(&self) -> Vec<u8> {
        let mut tcp = Vec::new();
        tcp.extend(self.source.port().to_be_bytes());
        tcp.extend(self.destination.port().to_be_bytes());
        tcp.extend(self.seq.to_be_bytes());
        tcp.extend(self.ack.to_be_bytes());
        tcp.extend([0x50, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend(&self.payload);
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let total = u16::try_from(20 + tcp.len()).unwrap_or(0).to_be_bytes();
                let start = [0x45, 0, total[0], total[1], 0, 1, 0x40, 0, 64, 6, 0, 0];
                [&start[..], &source.octets(), &destination.octets(), &tcp].concat()
            }
            (source, destination) => {
                let len = u16::try_from(tcp.len()).unwrap_or(0).to_be_bytes();
                let start = [0x60, 0, 0, 0, len[0], len[1], 6, 64];
                [&start[..], &octets(source), &octets(destination), &tcp].concat()
            }
        }
    }
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// `ip` in a frame of a link type that is read; as it is for others.
#[must_use]
pub fn link_frame(link: LinkType, ip: &[u8]) -> Vec<u8> {
    let v6 = ip.first().is_some_and(|first| first >> 4 == 6);
    let ethertype: [u8; 2] = if v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
    // As on the BSDs, where such captures come from.
    let family: u32 = if v6 { 24 } else { 2 };
    let header = match link {
        LinkType::ETHERNET => [&[2; 12][..], &ethertype].concat(),
        LinkType::LINUX_SLL => {
            [&[0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0][..], &ethertype].concat()
        }
        LinkType::LINUX_SLL2 => {
            let rest = [0, 0, 0, 0, 0, 7, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0];
            [&ethertype[..], &rest].concat()
        }
        LinkType::NULL => family.to_le_bytes().to_vec(),
        LinkType::LOOP => family.to_be_bytes().to_vec(),
        _ => Vec::new(),
    };
    [&header[..], ip].concat()
}

/// Unit of the stamps in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampUnit {
    /// Microseconds.
    Micro,
    /// Nanoseconds.
    Nano,
}

impl StampUnit {
    const fn ns(self) -> u64 {
        match self {
            Self::Micro => 1000,
            Self::Nano => 1,
        }
    }
}

/// A capture in the making. Numbers that do not fit their fields become the largest that does.
#[derive(Clone, Debug)]
pub struct Writer {
    order: Order,
    unit: StampUnit,
    ng: bool,
    snap_len: u32,
    bytes: Vec<u8>,
}

impl Writer {
    /// A classic capture; `snap_len` 0 keeps all of each frame.
    #[must_use]
    pub fn pcap(order: Order, unit: StampUnit, link: LinkType, snap_len: u32) -> Self {
        let mut writer = Self { order, unit, ng: false, snap_len, bytes: Vec::new() };
        writer.u32(match unit {
            StampUnit::Micro => 0xa1b2_c3d4,
            StampUnit::Nano => 0xa1b2_3c4d,
        });
        writer.u16(2);
        writer.u16(4);
        writer.u32(0);
        writer.u32(0);
        writer.u32(if snap_len == 0 { 262_144 } else { snap_len });
        writer.u32(u32::from(link.0));
        writer
    }

    /// A pcapng capture with one section and no interface yet.
    #[must_use]
    pub fn pcapng(order: Order, unit: StampUnit, snap_len: u32) -> Self {
        let mut writer = Self { order, unit, ng: true, snap_len, bytes: Vec::new() };
        writer.section();
        writer
    }

    /// Begins a further section, without interfaces.
    pub fn section(&mut self) {
        let mut body = Self { bytes: Vec::new(), ..self.clone() };
        body.u32(0x1a2b_3c4d);
        body.u16(1);
        body.u16(0);
        body.u32(u32::MAX);
        body.u32(u32::MAX);
        self.block(0x0a0d_0d0a, &body.bytes);
    }

    /// Describes the section's next interface, with the writer's unit and these further options,
    /// each a code and a value.
    pub fn interface(&mut self, link: LinkType, options: &[(u16, &[u8])]) {
        let mut body = Self { bytes: Vec::new(), ..self.clone() };
        body.u16(link.0);
        body.u16(0);
        body.u32(self.snap_len);
        for (code, value) in options {
            body.option(*code, value);
        }
        if self.unit == StampUnit::Nano && options.iter().all(|(code, _)| *code != 9) {
            body.option(9, &[9]);
        }
        body.option(0, &[]);
        self.block(1, &body.bytes);
    }

    /// Writes a frame that was captured at `stamp_ns`. `interface` matters to pcapng only.
    pub fn frame(&mut self, interface: u32, stamp_ns: u64, frame: &[u8]) {
        let kept = match usize::try_from(self.snap_len) {
            Ok(limit) if limit > 0 => frame.len().min(limit),
            _ => frame.len(),
        };
        self.cut_frame(interface, stamp_ns, &frame[..kept], frame.len());
    }

    /// Writes a frame of which `wire_len` bytes were on the wire.
    pub fn cut_frame(&mut self, interface: u32, stamp_ns: u64, kept: &[u8], wire_len: usize) {
        let ticks = stamp_ns / self.unit.ns();
        let lengths = [kept.len(), wire_len].map(|len| u32::try_from(len).unwrap_or(u32::MAX));
        if self.ng {
            let mut body = Self { bytes: Vec::new(), ..self.clone() };
            body.u32(interface);
            body.u32(u32::try_from(ticks >> 32).unwrap_or(u32::MAX));
            body.u32(u32::try_from(ticks & 0xffff_ffff).unwrap_or(u32::MAX));
            lengths.iter().for_each(|len| body.u32(*len));
            body.bytes.extend(kept);
            self.block(6, &body.bytes);
        } else {
            let per_second = 1_000_000_000 / self.unit.ns();
            self.u32(u32::try_from(ticks / per_second).unwrap_or(u32::MAX));
            self.u32(u32::try_from(ticks % per_second).unwrap_or(u32::MAX));
            lengths.iter().for_each(|len| self.u32(*len));
            self.bytes.extend(kept);
        }
    }

    /// Writes a pcapng block of any type.
    pub fn block(&mut self, kind: u32, body: &[u8]) {
        let padding = body.len().next_multiple_of(4) - body.len();
        let len = u32::try_from(body.len() + padding + 12).unwrap_or(u32::MAX);
        self.u32(kind);
        self.u32(len);
        self.bytes.extend(body);
        self.bytes.extend(&[0; 3][..padding]);
        self.u32(len);
    }

    /// Begins to write in this byte order; pcapng only, before a section.
    pub fn set_order(&mut self, order: Order) {
        self.order = order;
    }

    /// The file.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.u16(code);
        self.u16(u16::try_from(value.len()).unwrap_or(u16::MAX));
        self.bytes.extend(value);
        let padding = value.len().next_multiple_of(4) - value.len();
        self.bytes.extend(&[0; 3][..padding]);
    }

    fn u16(&mut self, number: u16) {
        self.bytes.extend(match self.order {
            Order::Little => number.to_le_bytes(),
            Order::Big => number.to_be_bytes(),
        });
    }

    fn u32(&mut self, number: u32) {
        self.bytes.extend(match self.order {
            Order::Little => number.to_le_bytes(),
            Order::Big => number.to_be_bytes(),
        });
    }
}
