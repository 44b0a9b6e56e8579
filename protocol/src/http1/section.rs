//! Collects a head or a trailer section, line by line, up to the empty line that ends it.

use super::framing::{Broken, Ledger};
use super::number::count;
use super::rule::Rule;

/// Bound on a head or a trailer section, in bytes.
pub const MAX_SECTION: usize = 64 * 1024;

/// What the section is for: only a head has a start line that empty lines may precede.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SectionKind {
    RequestHead,
    ResponseHead,
    Trailers,
}

/// An incremental reader of lines up to the first empty one.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    kind: SectionKind,
    bytes: Vec<u8>,
    line_start: usize,
    /// Bytes of leading empty lines that were dropped from `bytes`.
    dropped: u64,
}

impl Section {
    pub(crate) fn new(kind: SectionKind) -> Self {
        Self { kind, bytes: Vec::new(), line_start: 0, dropped: 0 }
    }

    /// Lines collected so far; ends with the empty line once `feed` said that it is whole.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes from the section's first byte to the first one of [`Self::bytes`].
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes bytes up to the end of the section. `base` is the message offset of the section's
    /// first byte. Answers how many were taken and whether the section is whole.
    pub(crate) fn feed(
        &mut self,
        input: &[u8],
        base: u64,
        ledger: &mut Ledger,
    ) -> Result<(usize, bool), Broken> {
        let mut taken = 0;
        while taken < input.len() {
            let rest = &input[taken..];
            let newline = rest.iter().position(|byte| *byte == b'\n');
            let piece = &rest[..newline.map_or(rest.len(), |at| at + 1)];
            self.append(piece, base, ledger)?;
            taken += piece.len();
            if newline.is_some() && self.end_line(base, ledger)? {
                return Ok((taken, true));
            }
        }
        Ok((taken, false))
    }

    fn append(&mut self, piece: &[u8], base: u64, ledger: &mut Ledger) -> Result<(), Broken> {
        let room = MAX_SECTION - self.bytes.len();
        self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        self.check_protocol_name(base, ledger)?;
        if piece.len() > room {
            ledger.note(Rule::HeadTooLarge, base + self.dropped + count(MAX_SECTION))?;
        }
        Ok(())
    }

    /// Whatever does not begin like a status line is refused at once, not when 64 KiB are full.
    fn check_protocol_name(&self, base: u64, ledger: &mut Ledger) -> Result<(), Broken> {
        const NAME: &[u8] = b"HTTP/1.";
        if self.kind != SectionKind::ResponseHead
            || matches!(self.bytes.first(), Some(b'\r' | b'\n'))
        {
            return Ok(());
        }
        let wrong = self.bytes.iter().zip(NAME).position(|(byte, name)| byte != name);
        wrong.map_or(Ok(()), |at| ledger.note(Rule::StartLine, base + self.dropped + count(at)))
    }

    /// Judges the line that was just completed; true when it is the empty line of the end.
    fn end_line(&mut self, base: u64, ledger: &mut Ledger) -> Result<bool, Broken> {
        let start = self.line_start;
        let end = self.bytes.len() - 1;
        let origin = base + self.dropped;
        let mut line = &self.bytes[start..end];
        match line.split_last() {
            Some((b'\r', before)) => line = before,
            _ => ledger.note(Rule::BareLf, origin + count(end))?,
        }
        if let Some(at) = line.iter().position(|byte| *byte == b'\r') {
            ledger.note(Rule::BareCr, origin + count(start + at))?;
        }
        self.line_start = self.bytes.len();
        if !line.is_empty() {
            return Ok(false);
        }
        if start > 0 || self.kind == SectionKind::Trailers {
            return Ok(true);
        }
        ledger.note(Rule::LeadingCrlf, origin)?;
        self.dropped += count(self.bytes.len());
        self.bytes.clear();
        self.line_start = 0;
        Ok(false)
    }
}
