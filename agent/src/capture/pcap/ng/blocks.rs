//! Contents of the blocks that matter.

use std::ops::Range;

use super::Order;
use super::interface::Interface;

/// Losses that a packet block tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DropCount {
    /// It tells nothing.
    Unknown,
    /// Packets lost since the one before.
    Known(u64),
}

/// A packet, and where its bytes lie in its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) interface: u32,
    /// Time in the interface's unit.
    pub(super) ticks: Option<u64>,
    pub(super) original_len: u32,
    pub(super) dropped: DropCount,
    pub(super) range: Range<usize>,
}

/// Padded to four bytes (section 3.1).
fn padded(len: usize) -> usize {
    len.next_multiple_of(4)
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Bytes from `start`, when the block has so many.
fn range(body: &[u8], start: usize, len: u32) -> Option<Range<usize>> {
    let end = start.checked_add(index(len))?;
    (end <= body.len()).then_some(start..end)
}

impl Packet {
    /// Section 4.3: interface, stamp high and low, captured and original length, bytes, options.
    pub(super) fn enhanced(order: Order, body: &[u8]) -> Option<Self> {
        let range = range(body, 20, order.u32(body, 12)?)?;
        let options = body.get(padded(range.end)..).unwrap_or_default();
        // epb_dropcount
        let dropped = Options { order, rest: options }.number(4);
        Some(Self {
            interface: order.u32(body, 0)?,
            ticks: Some(ticks(order, body, 4)?),
            original_len: order.u32(body, 16)?,
            dropped: dropped.map_or(DropCount::Unknown, DropCount::Known),
            range,
        })
    }

    /// Appendix A: as the enhanced one, but interface and losses share the first word.
    pub(super) fn obsolete(order: Order, body: &[u8]) -> Option<Self> {
        let dropped = order.u16(body, 2)?;
        Some(Self {
            interface: u32::from(order.u16(body, 0)?),
            ticks: Some(ticks(order, body, 4)?),
            original_len: order.u32(body, 16)?,
            dropped: if dropped == u16::MAX {
                DropCount::Unknown
            } else {
                DropCount::Known(u64::from(dropped))
            },
            range: range(body, 20, order.u32(body, 12)?)?,
        })
    }

    /// Section 4.4: the original length, then as many bytes as the snapshot length allows.
    pub(super) fn simple(order: Order, body: &[u8], first: Option<&Interface>) -> Option<Self> {
        let original_len = order.u32(body, 0)?;
        let limit = first.map_or(0, |interface| interface.snap_len);
        let captured = if limit == 0 { original_len } else { original_len.min(limit) };
        Some(Self {
            interface: 0,
            ticks: None,
            original_len,
            dropped: DropCount::Unknown,
            range: range(body, 4, captured)?,
        })
    }
}

/// A stamp in two halves, the high one first in either byte order.
fn ticks(order: Order, body: &[u8], offset: usize) -> Option<u64> {
    let [high, low] = [order.u32(body, offset)?, order.u32(body, offset + 4)?];
    Some(u64::from(high) << 32 | u64::from(low))
}

/// Interface and losses of a statistics block (section 4.6): isb_ifdrop and isb_osdrop.
pub(super) fn statistics(order: Order, body: &[u8]) -> Option<(u32, u64)> {
    let options = |code| Options { order, rest: body.get(12..).unwrap_or_default() }.number(code);
    let lost = [5, 7].into_iter().filter_map(options);
    Some((order.u32(body, 0)?, lost.fold(0, u64::saturating_add)))
}

/// Options at the end of a block (section 3.5).
#[derive(Clone, Copy, Debug)]
pub(super) struct Options<'a> {
    pub(super) order: Order,
    pub(super) rest: &'a [u8],
}

impl Options<'_> {
    /// The 64-bit number of the first option with this code.
    fn number(mut self, code: u16) -> Option<u64> {
        self.find(|(found, _)| *found == code).and_then(|(_, value)| self.order.u64(value, 0))
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let code = self.order.u16(self.rest, 0).filter(|code| *code != 0)?;
        let len = usize::from(self.order.u16(self.rest, 2)?);
        let value = self.rest.get(4..4 + len)?;
        self.rest = self.rest.get(4 + padded(len)..).unwrap_or_default();
        Some((code, value))
    }
}
