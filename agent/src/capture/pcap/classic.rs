//! The classic format: one header, then records. Described in draft-ietf-opsawg-pcap, sections 4
//! and 5; nanosecond stamps have a magic number of their own.

use std::io::Read;

use protocol::Nanos;

use super::error::{OpenError, Stop};
use super::input::{Input, MAX_RECORD};
use super::link::LinkType;
use super::order::Order;
use super::reader::Place;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Records of this variant have longer headers.
const MODIFIED: u32 = 0xa1b2_cd34;
const NS_PER_SECOND: u64 = 1_000_000_000;

/// What the file's header says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Classic {
    order: Order,
    /// Nanoseconds in a unit of the stamps' fraction.
    unit_ns: u64,
    pub(super) link: LinkType,
}

/// Order and unit by the magic number; `None` when it is none of this format.
fn by_magic(magic: [u8; 4]) -> Result<Option<(Order, u64)>, OpenError> {
    for order in [Order::Little, Order::Big] {
        match order.u32(&magic, 0) {
            Some(MICROSECONDS) => return Ok(Some((order, 1000))),
            Some(NANOSECONDS) => return Ok(Some((order, 1))),
            Some(MODIFIED) => {
                return Err(OpenError::Unsupported { what: "of the modified pcap variant" });
            }
            _ => {}
        }
    }
    Ok(None)
}

impl Classic {
    /// Reads the rest of the header behind `magic`; `None` when the file is of another format.
    pub(super) fn open<R: Read>(
        magic: [u8; 4],
        input: &mut Input<R>,
    ) -> Result<Option<Self>, OpenError> {
        let Some((order, unit_ns)) = by_magic(magic)? else { return Ok(None) };
        let rest: [u8; 20] = input.array().map_err(|_| OpenError::TornHeader)?;
        // The upper half says how long frame check sequences are; lengths come from IP headers.
        let link = order.u32(&rest, 16).unwrap_or(0) & 0xffff;
        let link = LinkType(u16::try_from(link).unwrap_or(u16::MAX));
        Ok(Some(Self { order, unit_ns, link }))
    }

    /// Reads the next record into `body`; `None` at the end of the file.
    pub(super) fn next<R: Read>(
        &self,
        input: &mut Input<R>,
        body: &mut Vec<u8>,
    ) -> Result<Option<Place>, Stop> {
        input.begin_record();
        let Some(header) = input.header::<16>()? else { return Ok(None) };
        let field = |offset| self.order.u32(&header, offset).unwrap_or(0);
        let (seconds, fraction, captured) = (field(0), field(4), field(8));
        if captured > MAX_RECORD {
            return Err(input.damaged("its length is beyond any packet's"));
        }
        input.body(captured, body)?;
        let stamp = u64::from(seconds) * NS_PER_SECOND + u64::from(fraction) * self.unit_ns;
        Ok(Some(Place {
            interface: 0,
            stamp: Some(Nanos::new(stamp)),
            link: self.link,
            original_len: field(12),
            range: 0..body.len(),
        }))
    }
}
