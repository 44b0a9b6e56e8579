//! What an interface description block says (section 4.2).

use protocol::Nanos;

use super::super::link::LinkType;
use super::Order;
use super::blocks::Options;

const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
const OFFSET: u16 = 14;
/// Names are shown to people: longer ones are cut.
const NAME_LIMIT: usize = 64;
const NS_PER_SECOND: i128 = 1_000_000_000;

/// The unit of an interface's stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// 10 to the power of minus this, seconds.
    Decimal(u8),
    /// 2 to the power of minus this, seconds.
    Binary(u8),
}

impl Unit {
    /// if_tsresol: the top bit chooses the base.
    fn from_option(value: u8) -> Self {
        if value & 0x80 == 0 { Self::Decimal(value) } else { Self::Binary(value & 0x7f) }
    }

    /// Whole nanoseconds in `ticks`, rounded down.
    fn nanoseconds(self, ticks: u64) -> i128 {
        let scaled = i128::from(ticks) * NS_PER_SECOND;
        match self {
            // Beyond the range of the divisor nothing but 0 is left.
            Self::Decimal(power) => {
                10_i128.checked_pow(u32::from(power)).map_or(0, |divisor| scaled / divisor)
            }
            Self::Binary(power) => scaled.checked_shr(u32::from(power)).unwrap_or(0),
        }
    }
}

/// An interface of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    /// Number in the whole file.
    pub(super) number: u32,
    pub(super) name: Option<String>,
    pub(super) link: LinkType,
    /// Bytes kept of each packet; 0 is all.
    pub(super) snap_len: u32,
    unit: Unit,
    offset_s: i64,
}

impl Interface {
    pub(super) fn read(order: Order, body: &[u8]) -> Option<Self> {
        let mut interface = Self {
            number: 0,
            name: None,
            link: LinkType(order.u16(body, 0)?),
            snap_len: order.u32(body, 4)?,
            // The default when the option is missing.
            unit: Unit::Decimal(6),
            offset_s: 0,
        };
        for (code, value) in (Options { order, rest: body.get(8..).unwrap_or_default() }) {
            match (code, value) {
                (NAME, name) => interface.name = Some(printable(name)),
                (RESOLUTION, [unit, ..]) => interface.unit = Unit::from_option(*unit),
                (OFFSET, seconds) => {
                    interface.offset_s = order.u64(seconds, 0).map_or(0, u64::cast_signed);
                }
                _ => {}
            }
        }
        Some(interface)
    }

    /// The instant of a stamp; what lies outside of the representable range is cut to it.
    pub(super) fn stamp(&self, ticks: u64) -> Nanos {
        let ns = self.unit.nanoseconds(ticks) + i128::from(self.offset_s) * NS_PER_SECOND;
        Nanos::new(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
    }
}

/// Names come from strangers and go to terminals.
fn printable(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    text.chars().filter(|it| !it.is_control()).take(NAME_LIMIT).collect()
}
