//! Frames of a capture file, one after the other, whatever its format.

use std::io::Read;
use std::ops::Range;

use protocol::Nanos;

use super::classic::Classic;
use super::error::{OpenError, Stop};
use super::input::Input;
use super::link::LinkType;
use super::ng::{NG_MAGIC, Ng};

/// The two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The classic format.
    Pcap,
    /// The block format.
    PcapNg,
}

impl Format {
    /// Its usual name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pcap => "pcap",
            Self::PcapNg => "pcapng",
        }
    }
}

/// One captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Number of its interface in the whole file, sections included.
    pub interface: u32,
    /// When it was captured, nanoseconds of the file's clock (usually since 1970, UTC); `None` for
    /// records that carry no stamp.
    pub stamp: Option<Nanos>,
    /// What the bytes begin with.
    pub link: LinkType,
    /// Bytes on the wire.
    pub original_len: u32,
    /// The bytes captured.
    pub data: &'a [u8],
}

/// A frame whose bytes lie in the reader's buffer.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) interface: u32,
    pub(super) stamp: Option<Nanos>,
    pub(super) link: LinkType,
    pub(super) original_len: u32,
    pub(super) range: Range<usize>,
}

enum Kind {
    Classic(Classic),
    Ng(Ng),
}

/// A capture file being read. Memory is bounded by the largest record and the number of interfaces.
pub struct Reader<R> {
    input: Input<R>,
    kind: Kind,
    body: Vec<u8>,
    place: Option<Place>,
}

/// First bytes of compressed files, and what unpacks them.
const COMPRESSED: [(&[u8], &str); 4] = [
    (&[0x1f, 0x8b], "gzip"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (&[0xfd, b'7', b'z', b'X'], "xz"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
];

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// When this is no capture, with what to do about it.
    pub fn open(reader: R) -> Result<Self, OpenError> {
        let mut input = Input::new(reader);
        let mut magic = [0; 4];
        let filled = input.fill(&mut magic).map_err(|stop| match stop {
            Stop::Read { source, .. } => OpenError::Read(source),
            Stop::Torn { .. } | Stop::Damaged { .. } => OpenError::TornHeader,
        })?;
        let first = &magic[..filled];
        if first.is_empty() {
            return Err(OpenError::Empty);
        }
        if let Some((_, with)) = COMPRESSED.iter().find(|(start, _)| first.starts_with(start)) {
            return Err(OpenError::Compressed { with });
        }
        let kind = if magic == NG_MAGIC {
            Kind::Ng(Ng::open(&mut input)?)
        } else if let Some(classic) = Classic::open(magic, &mut input)? {
            Kind::Classic(classic)
        } else {
            return Err(OpenError::NotACapture { first: first.to_vec() });
        };
        Ok(Self { input, kind, body: Vec::new(), place: None })
    }

    /// Goes to the next frame; false at the end of the file.
    ///
    /// # Errors
    /// When the file breaks off or contradicts its format; nothing can be read behind that.
    pub fn advance(&mut self) -> Result<bool, Stop> {
        self.place = None;
        self.place = match &mut self.kind {
            Kind::Classic(classic) => classic.next(&mut self.input, &mut self.body)?,
            Kind::Ng(ng) => ng.next(&mut self.input, &mut self.body)?,
        };
        Ok(self.place.is_some())
    }

    /// The frame that the last [`Reader::advance`] went to.
    #[must_use]
    pub fn frame(&self) -> Option<Frame<'_>> {
        let Place { interface, stamp, link, original_len, range } = self.place.clone()?;
        let data = self.body.get(range)?;
        Some(Frame { interface, stamp, link, original_len, data })
    }

    /// Which of the two formats it is.
    #[must_use]
    pub fn format(&self) -> Format {
        match self.kind {
            Kind::Classic(_) => Format::Pcap,
            Kind::Ng(_) => Format::PcapNg,
        }
    }

    /// Name of an interface: as the file tells it, or its number.
    #[must_use]
    pub fn interface_name(&self, interface: u32) -> String {
        let name = match &self.kind {
            Kind::Classic(_) => None,
            Kind::Ng(ng) => ng.interface_name(interface),
        };
        name.map_or_else(|| interface.to_string(), str::to_owned)
    }

    /// Packets that the capturing program says it lost.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        match &self.kind {
            Kind::Classic(_) => 0,
            Kind::Ng(ng) => ng.dropped(),
        }
    }

    /// Bytes of the file read so far.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.input.position()
    }
}
