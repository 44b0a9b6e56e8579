//! The chunked transfer coding of RFC 9112 section 7.1, one byte of state at a time.

use super::fields::check_lines;
use super::framing::{Broken, Ledger};
use super::number::{clamp, count, hex_digit};
use super::rule::Rule;
use super::section::{Section, SectionKind};

/// Bound on one chunk size line with its extensions, in bytes.
pub const MAX_CHUNK_LINE: u64 = 4 * 1024;

#[derive(Clone, Debug)]
enum State {
    /// Expects the first digit of a chunk size.
    SizeStart,
    Size,
    Blank,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailers {
        section: Section,
        base: u64,
    },
    Done,
}

/// Decoder of one chunked body.
#[derive(Clone, Debug)]
pub(crate) struct Chunked {
    state: State,
    /// Size of the chunk while its line is read, then the data bytes still to come.
    size: u64,
    line_len: u64,
}

impl Chunked {
    pub(crate) fn new() -> Self {
        Self { state: State::SizeStart, size: 0, line_len: 0 }
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Passes over `bytes` unseen bytes; false when they hid framing, so that the position is lost.
    pub(crate) fn skip(&mut self, bytes: u64) -> bool {
        if !matches!(self.state, State::Data) || bytes > self.size {
            return false;
        }
        self.consume_data(bytes);
        true
    }

    /// Takes bytes up to the end of the body. `base` is the message offset of `input[0]`; `body`
    /// gets each piece of data with its place in `input`.
    pub(crate) fn feed(
        &mut self,
        input: &[u8],
        base: u64,
        ledger: &mut Ledger,
        body: &mut dyn FnMut(&[u8], usize),
    ) -> Result<usize, Broken> {
        let mut at = 0;
        while at < input.len() && !self.is_done() {
            let offset = base + count(at);
            match &mut self.state {
                State::Data => {
                    let len = clamp(input.len() - at, self.size);
                    body(&input[at..at + len], at);
                    self.consume_data(count(len));
                    at += len;
                }
                State::Trailers { section, base: start } => {
                    let (taken, whole) = section.feed(&input[at..], *start, ledger)?;
                    at += taken;
                    if whole {
                        end_trailers(section, *start, ledger)?;
                        self.state = State::Done;
                    }
                }
                _ => {
                    self.step(input[at], offset, ledger)?;
                    at += 1;
                }
            }
        }
        Ok(at)
    }

    fn consume_data(&mut self, bytes: u64) {
        self.size -= bytes;
        if self.size == 0 {
            self.state = State::DataCr;
        }
    }

    fn step(&mut self, byte: u8, offset: u64, ledger: &mut Ledger) -> Result<(), Broken> {
        let refused = match (&self.state, byte) {
            (State::DataCr, b'\r') => return self.go(State::DataLf),
            (State::DataLf, b'\n') => {
                self.size = 0;
                self.line_len = 0;
                return self.go(State::SizeStart);
            }
            (State::SizeLf, b'\n') => return self.end_line(offset),
            (State::SizeLf, _) => Rule::ChunkLineEnd,
            (State::DataCr | State::Size | State::Blank | State::Extension, b'\n') => {
                Rule::ChunkBareLf
            }
            (State::DataCr | State::DataLf, _) => Rule::ChunkDataEnd,
            _ => return self.size_line(byte, offset, ledger),
        };
        ledger.note(refused, offset)
    }

    fn go(&mut self, state: State) -> Result<(), Broken> {
        self.state = state;
        Ok(())
    }

    fn size_line(&mut self, byte: u8, offset: u64, ledger: &mut Ledger) -> Result<(), Broken> {
        self.line_len += 1;
        if self.line_len > MAX_CHUNK_LINE {
            return ledger.note(Rule::ChunkLineTooLong, offset);
        }
        match (&self.state, byte) {
            (State::SizeStart | State::Size, _) if hex_digit(byte).is_some() => {
                return self.digit(byte, offset, ledger);
            }
            (State::Size, b'\r') => {}
            (State::Blank, b'\r') => ledger.note(Rule::ChunkSizeBlank, offset)?,
            (State::Extension, b'\r') => ledger.note(Rule::ChunkExtension, offset)?,
            (State::Size | State::Blank, b' ' | b'\t') => return self.go(State::Blank),
            (State::Size | State::Blank, b';') => return self.go(State::Extension),
            (State::Extension, b'\t' | b' '..=b'~' | 0x80..) => return Ok(()),
            (State::Extension, _) => return ledger.note(Rule::ChunkExtensionSyntax, offset),
            _ => return ledger.note(Rule::ChunkSize, offset),
        }
        self.go(State::SizeLf)
    }

    fn digit(&mut self, byte: u8, offset: u64, ledger: &mut Ledger) -> Result<(), Broken> {
        let value = hex_digit(byte).unwrap_or(0);
        if self.size > u64::MAX >> 4 {
            return ledger.note(Rule::ChunkSizeOverflow, offset);
        }
        self.size = (self.size << 4) | value;
        self.go(State::Size)
    }

    fn end_line(&mut self, offset: u64) -> Result<(), Broken> {
        self.go(match self.size {
            0 => State::Trailers { section: Section::new(SectionKind::Trailers), base: offset + 1 },
            _ => State::Data,
        })
    }
}

fn end_trailers(section: &Section, base: u64, ledger: &mut Ledger) -> Result<(), Broken> {
    let lines = check_lines(section.bytes(), base, ledger)?;
    for _ in 0..lines {
        ledger.note(Rule::Trailers, base)?;
    }
    Ok(())
}
