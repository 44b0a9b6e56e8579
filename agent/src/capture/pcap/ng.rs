//! The block format, as in draft-ietf-opsawg-pcapng. Section numbers below are those of its
//! revision 03.

mod blocks;
mod interface;

use std::collections::BTreeMap;
use std::io::Read;

use super::error::{OpenError, Stop};
use super::input::{Input, MAX_RECORD};
use super::order::Order;
use super::reader::Place;
use blocks::{DropCount, Packet};
use interface::Interface;

/// Type of a section header block (section 4.1): the same in both byte orders.
pub(super) const NG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// The section's byte order (section 4.1).
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Type and two lengths around every block (section 3.1).
const FRAME: u32 = 12;
/// Interfaces in one file at most: what is beyond is damage.
const MAX_INTERFACES: usize = 4096;

const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// Where the file is, and what its sections have told.
#[derive(Debug)]
pub(super) struct Ng {
    order: Order,
    /// Interfaces of the current section, by their number in it.
    section: Vec<Interface>,
    /// Interfaces of all sections, by name and number: the same one in several sections is one.
    known: BTreeMap<(Option<String>, usize), u32>,
    names: Vec<Option<String>>,
    dropped_by_packet: u64,
    /// Losses that statistics blocks told, by interface; later ones include earlier ones.
    dropped: BTreeMap<u32, u64>,
}

impl Ng {
    /// Reads the rest of the first section header.
    pub(super) fn open<R: Read>(input: &mut Input<R>) -> Result<Self, OpenError> {
        let mut ng = Self {
            order: Order::Little,
            section: Vec::new(),
            known: BTreeMap::new(),
            names: Vec::new(),
            dropped_by_packet: 0,
            dropped: BTreeMap::new(),
        };
        match ng.begin_section(input, &mut Vec::new()) {
            Ok(()) => Ok(ng),
            Err(Stop::Read { source, .. }) => Err(OpenError::Read(source)),
            Err(Stop::Torn { .. }) => Err(OpenError::TornHeader),
            Err(Stop::Damaged { .. }) => Err(OpenError::Unsupported {
                what: "a pcapng file of an unknown version or damaged",
            }),
        }
    }

    /// A section header behind its type: sets the byte order and forgets the interfaces.
    fn begin_section<R: Read>(
        &mut self,
        input: &mut Input<R>,
        body: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let head: [u8; 8] = input.array()?;
        let orders = [Order::Little, Order::Big];
        let order = orders.into_iter().find(|it| it.u32(&head, 4) == Some(BYTE_ORDER_MAGIC));
        self.order = order.ok_or_else(|| input.damaged("its byte order is unknown"))?;
        let len = self.order.u32(&head, 0).unwrap_or(0);
        // The byte-order magic has been read already.
        let rest = self.content_len(len, input)?.checked_sub(4);
        let rest = rest.ok_or_else(|| input.damaged("its section header is too short"))?;
        input.body(rest, body)?;
        self.check_end(len, input)?;
        if self.order.u16(body, 0) != Some(1) {
            return Err(input.damaged("its version is not 1"));
        }
        self.section.clear();
        Ok(())
    }

    /// Bytes between the two lengths of a block.
    fn content_len<R: Read>(&self, len: u32, input: &Input<R>) -> Result<u32, Stop> {
        match len.checked_sub(FRAME) {
            Some(content) if len.is_multiple_of(4) && content <= MAX_RECORD => Ok(content),
            _ => Err(input.damaged("its length is impossible")),
        }
    }

    fn check_end<R: Read>(&self, len: u32, input: &mut Input<R>) -> Result<(), Stop> {
        let end: [u8; 4] = input.array()?;
        if self.order.u32(&end, 0) == Some(len) {
            Ok(())
        } else {
            Err(input.damaged("its two lengths differ"))
        }
    }

    /// Reads up to the next packet into `body`; `None` at the end of the file.
    pub(super) fn next<R: Read>(
        &mut self,
        input: &mut Input<R>,
        body: &mut Vec<u8>,
    ) -> Result<Option<Place>, Stop> {
        loop {
            input.begin_record();
            let Some(kind) = input.header::<4>()? else { return Ok(None) };
            if kind == NG_MAGIC {
                self.begin_section(input, body)?;
                continue;
            }
            let len: [u8; 4] = input.array()?;
            let len = self.order.u32(&len, 0).unwrap_or(0);
            let kind = self.order.u32(&kind, 0).unwrap_or(0);
            if let Some(place) = self.block(kind, len, input, body)? {
                return Ok(Some(place));
            }
        }
    }

    /// Reads one block; a packet, if it is one.
    fn block<R: Read>(
        &mut self,
        kind: u32,
        len: u32,
        input: &mut Input<R>,
        body: &mut Vec<u8>,
    ) -> Result<Option<Place>, Stop> {
        let known = [INTERFACE, OBSOLETE_PACKET, SIMPLE_PACKET, STATISTICS, ENHANCED_PACKET];
        if !known.contains(&kind) {
            return self.skip(len, input);
        }
        let content = self.content_len(len, input)?;
        input.body(content, body)?;
        self.check_end(len, input)?;
        let packet = match kind {
            INTERFACE => return self.interface(input, body).map(|()| None),
            STATISTICS => {
                self.statistics(body);
                return Ok(None);
            }
            ENHANCED_PACKET => Packet::enhanced(self.order, body),
            OBSOLETE_PACKET => Packet::obsolete(self.order, body),
            _ => Packet::simple(self.order, body, self.section.first()),
        };
        let packet = packet.ok_or_else(|| input.damaged("its packet is longer than its block"))?;
        self.place(packet, input).map(Some)
    }

    /// Unknown blocks are to be passed over (section 3.1), however large.
    fn skip<R: Read>(&self, len: u32, input: &mut Input<R>) -> Result<Option<Place>, Stop> {
        let content = len.checked_sub(FRAME).filter(|_| len.is_multiple_of(4));
        let content = content.ok_or_else(|| input.damaged("its length is impossible"))?;
        input.skip(u64::from(content))?;
        self.check_end(len, input)?;
        Ok(None)
    }

    fn place<R: Read>(&mut self, packet: Packet, input: &Input<R>) -> Result<Place, Stop> {
        let interface = usize::try_from(packet.interface).ok();
        let interface = interface.and_then(|id| self.section.get(id));
        let interface =
            interface.ok_or_else(|| input.damaged("its interface has not been described"))?;
        if let DropCount::Known(count) = packet.dropped {
            self.dropped_by_packet = self.dropped_by_packet.saturating_add(count);
        }
        Ok(Place {
            interface: interface.number,
            stamp: packet.ticks.map(|ticks| interface.stamp(ticks)),
            link: interface.link,
            original_len: packet.original_len,
            range: packet.range,
        })
    }

    fn interface<R: Read>(&mut self, input: &Input<R>, body: &[u8]) -> Result<(), Stop> {
        let described = Interface::read(self.order, body);
        let mut described = described.ok_or_else(|| input.damaged("its interface is cut short"))?;
        if self.section.len() >= MAX_INTERFACES || self.names.len() >= MAX_INTERFACES {
            return Err(input.damaged("it describes more interfaces than any host has"));
        }
        let key = (described.name.take(), self.section.len());
        described.number = match self.known.get(&key) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
                self.names.push(key.0.clone());
                self.known.insert(key, number);
                number
            }
        };
        self.section.push(described);
        Ok(())
    }

    fn statistics(&mut self, body: &[u8]) {
        let Some((id, lost)) = blocks::statistics(self.order, body) else { return };
        let interface = usize::try_from(id).ok().and_then(|id| self.section.get(id));
        if let Some(interface) = interface {
            let known = self.dropped.entry(interface.number).or_insert(0);
            *known = lost.max(*known);
        }
    }

    pub(super) fn interface_name(&self, number: u32) -> Option<&str> {
        self.names.get(usize::try_from(number).ok()?)?.as_deref()
    }

    /// The two ways of telling losses count the same packets: the larger is taken.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
            .values()
            .fold(0_u64, |sum, lost| sum.saturating_add(*lost))
            .max(self.dropped_by_packet)
    }
}
