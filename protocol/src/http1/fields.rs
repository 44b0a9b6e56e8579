//! Field lines: their syntax, and look-up by name.

use httparse::{EMPTY_HEADER, Error, Header};

use super::framing::{Broken, Ledger};
use super::number::count;
use super::rule::Rule;

/// The fields of one head, in the order of the wire.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a [Header<'a>]);

impl<'a> Fields<'a> {
    pub(crate) fn new(headers: &'a [Header<'a>]) -> Self {
        Self(headers)
    }

    /// Value of the first field called `name` (any case), without surrounding blanks.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    /// As [`Self::get`], when the value is UTF-8.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// Values of all fields called `name` (any case), without surrounding blanks.
    pub fn all<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.0.iter().filter(move |h| h.name.eq_ignore_ascii_case(name)).map(|h| trim(h.value))
    }

    /// Every field as name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        self.0.iter().map(|h| (h.name, trim(h.value)))
    }

    /// Elements of the comma-separated list that all fields called `name` form together.
    pub fn list<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.all(name).flat_map(|value| value.split(|byte| *byte == b',')).map(trim)
    }

    /// True when the list `name` holds `token` (any case).
    #[must_use]
    pub fn has_token(&self, name: &str, token: &str) -> bool {
        self.list(name).any(|element| element.eq_ignore_ascii_case(token.as_bytes()))
    }
}

/// Cuts the blanks of RFC 9110's OWS, and the line ends of an obsolete fold, from both sides.
pub(crate) fn trim(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let Some(start) = value.iter().position(|byte| !blank(byte)) else { return &[] };
    let end = value.iter().rposition(|byte| !blank(byte)).map_or(start, |at| at + 1);
    &value[start..end]
}

/// Checks each field line of a section that ends with an empty line; answers how many there are.
///
/// Line by line, because the head parser does not tell where it stopped.
pub(crate) fn check_lines(section: &[u8], base: u64, ledger: &mut Ledger) -> Result<usize, Broken> {
    let mut at = 0;
    let mut lines = 0;
    for line in section.split_inclusive(|byte| *byte == b'\n') {
        if matches!(line, b"\n" | b"\r\n") {
            break;
        }
        let offset = base + count(at);
        match (lines, line.first()) {
            (0, Some(b' ' | b'\t')) => ledger.note(Rule::LeadingWhitespace, offset)?,
            (_, Some(b' ' | b'\t')) => check_fold(line, offset, ledger)?,
            _ => check_line(line, offset, ledger)?,
        }
        at += line.len();
        lines += 1;
    }
    Ok(lines)
}

fn check_line(line: &[u8], offset: u64, ledger: &mut Ledger) -> Result<(), Broken> {
    let mut room = [EMPTY_HEADER; 1];
    match httparse::parse_headers(line, &mut room) {
        Ok(_) => Ok(()),
        Err(Error::HeaderValue) => ledger.note(Rule::FieldValue, offset),
        Err(_) => ledger.note(Rule::FieldLine, offset),
    }
}

fn check_fold(line: &[u8], offset: u64, ledger: &mut Ledger) -> Result<(), Broken> {
    ledger.note(Rule::ObsFold, offset)?;
    let control = |byte: &u8| matches!(byte, 0..=8 | 11..=12 | 14..=31 | 127);
    line.iter()
        .position(control)
        .map_or(Ok(()), |at| ledger.note(Rule::FieldValue, offset + count(at)))
}
