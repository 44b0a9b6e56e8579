//! Byte orders: a capture is written in that of the host that made it.

/// A byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

fn array<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk::<N>().copied()
}

impl Order {
    /// The number in the two bytes at `offset`.
    pub(super) fn u16(self, bytes: &[u8], offset: usize) -> Option<u16> {
        let number = array(bytes, offset)?;
        Some(match self {
            Self::Little => u16::from_le_bytes(number),
            Self::Big => u16::from_be_bytes(number),
        })
    }

    /// The number in the four bytes at `offset`.
    pub(super) fn u32(self, bytes: &[u8], offset: usize) -> Option<u32> {
        let number = array(bytes, offset)?;
        Some(match self {
            Self::Little => u32::from_le_bytes(number),
            Self::Big => u32::from_be_bytes(number),
        })
    }

    /// The number in the eight bytes at `offset`.
    pub(super) fn u64(self, bytes: &[u8], offset: usize) -> Option<u64> {
        let number = array(bytes, offset)?;
        Some(match self {
            Self::Little => u64::from_le_bytes(number),
            Self::Big => u64::from_be_bytes(number),
        })
    }
}
