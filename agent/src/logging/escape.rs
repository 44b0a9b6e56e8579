//! Control characters in text that others wrote.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use tracing_subscriber::fmt::MakeWriter;

const ESCAPE: char = '\u{1b}';

/// `text` with every control character written as its escape: what a terminal may be sent and a line
/// may hold. Texts of several lines keep their line ends.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |character| character == '\n')
}

/// `text` as part of a line: as [`printable`], and without line ends.
pub(super) fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

fn escaped(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    let harmful = |character: char| character.is_control() && !keep(character);
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if harmful(character) {
            // Writing to a string cannot fail.
            let _ = write!(out, "{}", character.escape_default());
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// A place for log lines in which each event stays one line.
#[derive(Clone, Debug)]
pub struct Escaping<W> {
    inner: W,
    colours: bool,
}

impl<W> Escaping<W> {
    /// Escapes what goes to `inner`; with `colours` the formatter's own sequences pass, and values
    /// must have been escaped before.
    pub const fn new(inner: W, colours: bool) -> Self {
        Self { inner, colours }
    }
}

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for Escaping<W> {
    type Writer = EscapedWriter<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        EscapedWriter { inner: self.inner.make_writer(), colours: self.colours }
    }
}

/// A writer that is given one whole event at a time.
#[derive(Debug)]
pub struct EscapedWriter<W> {
    inner: W,
    colours: bool,
}

impl<W: Write> Write for EscapedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let (line, end) = text.strip_suffix('\n').map_or((&*text, ""), |line| (line, "\n"));
        let line = escaped(line, |character| self.colours && character == ESCAPE);
        self.inner.write_all(format!("{line}{end}").as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
