//! The event-stream grammar of the WHATWG HTML standard, over bytes, for any split of them.
//!
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream>

/// Default bound on one line and on one event's data, in bytes.
pub const MAX_EVENT: usize = 1024 * 1024;

/// What the parser tells its sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseItem<'a> {
    /// An event was dispatched.
    Event {
        /// Value of the last `event` field; empty when there was none.
        kind: &'a [u8],
        /// All `data` values, joined by LF.
        data: &'a [u8],
    },
    /// A comment line: a sign of life, never an event.
    Comment,
    /// An event ended that exceeded the bound; its data is gone.
    TooLarge,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Incremental parser of one stream.
///
/// A line ends at its CR or at its LF, and a LF right after a CR belongs to that CR. An event is
/// therefore told at the CR of a CRLF blank line: to wait for the LF would delay every event of a
/// stream with CR line ends.
#[derive(Clone, Debug)]
pub struct SseParser {
    limit: usize,
    line: Vec<u8>,
    line_too_long: bool,
    data: Vec<u8>,
    has_data: bool,
    kind: Vec<u8>,
    too_large: bool,
    after_cr: bool,
    /// Bytes of a byte order mark seen at the start of the stream; `None` once that is decided.
    bom: Option<usize>,
    fields_pending: bool,
}

impl Default for SseParser {
    fn default() -> Self {
        Self::new(MAX_EVENT)
    }
}

impl SseParser {
    /// A parser at the start of a stream that bounds a line and an event's data to `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            line_too_long: false,
            data: Vec::new(),
            has_data: false,
            kind: Vec::new(),
            too_large: false,
            after_cr: false,
            bom: Some(0),
            fields_pending: false,
        }
    }

    /// Takes all of `input`. `sink` gets each item with the number of input bytes up to and
    /// including the one that completed it.
    pub fn feed(&mut self, input: &[u8], mut sink: impl FnMut(SseItem<'_>, usize)) {
        let mut at = self.skip_bom(input);
        while at < input.len() {
            if std::mem::take(&mut self.after_cr) && input[at] == b'\n' {
                at += 1;
                continue;
            }
            let rest = &input[at..];
            let Some(len) = memchr::memchr2(b'\r', b'\n', rest) else {
                self.hold(rest);
                return;
            };
            self.after_cr = rest[len] == b'\r';
            at += len + 1;
            self.end_line(&rest[..len], &mut |item| sink(item, at));
        }
    }

    /// True when the stream would end inside an event: the standard discards it.
    #[must_use]
    pub fn has_unterminated_event(&self) -> bool {
        let pending_line = !self.line.is_empty() && self.line.first() != Some(&b':');
        self.fields_pending || self.too_large || self.line_too_long || pending_line
    }

    /// Drops one byte order mark at the start; a part that turns out to be none is line content.
    fn skip_bom(&mut self, input: &[u8]) -> usize {
        let Some(seen) = self.bom else { return 0 };
        let matching =
            BOM[seen..].iter().zip(input).take_while(|(mark, byte)| mark == byte).count();
        let total = seen + matching;
        if total == BOM.len() {
            self.bom = None;
        } else if matching < input.len() {
            self.bom = None;
            self.hold(&BOM[..total]);
        } else {
            self.bom = Some(total);
        }
        matching
    }

    /// Keeps a part of a line until its end comes.
    fn hold(&mut self, part: &[u8]) {
        if self.line.len() + part.len() <= self.limit {
            self.line.extend_from_slice(part);
            return;
        }
        // A comment of any length is no event: its colon is all that need be kept.
        self.line_too_long |= self.line.first().or(part.first()) != Some(&b':');
        if self.line.is_empty() {
            self.line.extend(part.first());
        }
    }

    fn end_line(&mut self, tail: &[u8], sink: &mut dyn FnMut(SseItem<'_>)) {
        if self.line.is_empty() && !self.line_too_long && tail.len() <= self.limit {
            return self.process(tail, sink);
        }
        self.hold(tail);
        if std::mem::take(&mut self.line_too_long) {
            self.too_large = true;
            self.line.clear();
            return;
        }
        let line = std::mem::take(&mut self.line);
        self.process(&line, sink);
        self.line = line;
        self.line.clear();
    }

    fn process(&mut self, line: &[u8], sink: &mut dyn FnMut(SseItem<'_>)) {
        match memchr::memchr(b':', line) {
            None if line.is_empty() => self.dispatch(sink),
            None => self.field(line, &[]),
            Some(0) => sink(SseItem::Comment),
            Some(colon) => {
                let value = &line[colon + 1..];
                self.field(&line[..colon], value.strip_prefix(b" ").unwrap_or(value));
            }
        }
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.fields_pending = true;
        match name {
            b"data" => self.append_data(value),
            b"event" => {
                self.kind.clear();
                self.kind.extend_from_slice(value);
            }
            // `id` and `retry` only steer reconnection, which nobody here does; unknown names are
            // to be ignored.
            _ => {}
        }
    }

    fn append_data(&mut self, value: &[u8]) {
        let separator = usize::from(self.has_data);
        if self.too_large || self.data.len() + separator + value.len() > self.limit {
            self.too_large = true;
            self.data.clear();
            return;
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
    }

    fn dispatch(&mut self, sink: &mut dyn FnMut(SseItem<'_>)) {
        self.fields_pending = false;
        if std::mem::take(&mut self.too_large) {
            self.has_data = false;
            sink(SseItem::TooLarge);
        } else if std::mem::take(&mut self.has_data) {
            sink(SseItem::Event { kind: &self.kind, data: &self.data });
        }
        self.data.clear();
        self.kind.clear();
    }
}
