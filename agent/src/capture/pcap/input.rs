//! Bytes of a file, in order, with their position.

use std::io::{BufReader, ErrorKind, Read};

use super::error::Stop;

/// Bytes fetched from the system at a time.
const FETCH: usize = 256 * 1024;
/// A record larger than this is damage: capture tools write at most 256 KiB of a packet.
pub(super) const MAX_RECORD: u32 = 16 * 1024 * 1024;

/// A file being read from front to back.
pub(super) struct Input<R> {
    reader: BufReader<R>,
    position: u64,
    /// Where the record being read begins.
    record: u64,
}

impl<R: Read> Input<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(FETCH, reader), position: 0, record: 0 }
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The next byte begins a record.
    pub(super) fn begin_record(&mut self) {
        self.record = self.position;
    }

    pub(super) fn damaged(&self, what: &'static str) -> Stop {
        Stop::Damaged { at: self.record, what }
    }

    /// Fills `buffer`; returns how many bytes there were before the end of the file.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, Stop> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(Stop::Read { at: self.position, source }),
            }
        }
        self.position += filled as u64;
        Ok(filled)
    }

    /// The next `N` bytes; `None` at the end of the file.
    pub(super) fn header<const N: usize>(&mut self) -> Result<Option<[u8; N]>, Stop> {
        let mut header = [0; N];
        match self.fill(&mut header)? {
            0 => Ok(None),
            count if count == N => Ok(Some(header)),
            _ => Err(self.torn()),
        }
    }

    /// The next `N` bytes of a record that has begun.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        self.header()?.ok_or_else(|| self.torn())
    }

    /// The next `len` bytes of a record that has begun, into `body`.
    pub(super) fn body(&mut self, len: u32, body: &mut Vec<u8>) -> Result<(), Stop> {
        body.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
        if self.fill(body)? < body.len() { Err(self.torn()) } else { Ok(()) }
    }

    /// Passes over `len` bytes of a record that has begun, without keeping them.
    pub(super) fn skip(&mut self, len: u64) -> Result<(), Stop> {
        let passed = std::io::copy(&mut self.reader.by_ref().take(len), &mut std::io::sink());
        let passed = passed.map_err(|source| Stop::Read { at: self.position, source })?;
        self.position += passed;
        if passed < len { Err(self.torn()) } else { Ok(()) }
    }

    fn torn(&self) -> Stop {
        Stop::Torn { at: self.record }
    }
}
