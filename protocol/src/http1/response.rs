//! Incremental decoder of one final response and the interim responses before it.

use httparse::{EMPTY_HEADER, ParserConfig, Response};

use super::body::Body;
use super::fields::{Fields, check_lines};
use super::framing::{Broken, Close, Framing, Ledger, Tolerated, UnknownCause};
use super::length::{BodyKind, Method, keeps_alive, of_response, transfer_codings};
use super::number::count;
use super::rule::{Direction, Rule};
use super::section::{Section, SectionKind};

/// The head of a response, as lent to the sink.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// Status code, 100 to 599.
    pub status: u16,
    /// Minor version: 0 or 1.
    pub version_minor: u8,
    /// How the body's end is found.
    pub body: BodyKind,
    /// A transfer coding other than chunked is applied, so that the body cannot be read.
    pub transfer_coded: bool,
    /// The connection may carry another response after this one.
    pub keep_alive: bool,
    /// The fields.
    pub fields: Fields<'a>,
}

/// What the decoder tells its sink, in the order of the wire.
#[derive(Clone, Copy, Debug)]
pub enum ResponseEvent<'a> {
    /// An interim (1xx) response ended; the final one is still to come.
    Interim(u16),
    /// The final head ended.
    Head(ResponseHead<'a>),
    /// Body bytes, free of chunk framing.
    Body {
        /// The bytes.
        bytes: &'a [u8],
        /// Place of the first of them in the slice that was fed.
        at: usize,
    },
    /// The message ended.
    End,
}

#[derive(Clone, Debug)]
enum State {
    Head(Section),
    Body(Body),
    /// Invalid or lost: the rest of the connection cannot be assigned to a message.
    Stopped,
}

/// Decoder of the response to one request.
#[derive(Clone, Debug)]
pub struct ResponseDecoder {
    method: Method,
    state: State,
    ledger: Ledger,
    /// Bytes of this response taken so far, interim heads included.
    offset: u64,
    section_start: u64,
    keep_alive: bool,
}

impl ResponseDecoder {
    /// A decoder for the response to a request with `method`.
    #[must_use]
    pub fn new(method: Method) -> Self {
        Self {
            method,
            state: State::Head(Section::new(SectionKind::ResponseHead)),
            ledger: Ledger::new(Direction::Response),
            offset: 0,
            section_start: 0,
            keep_alive: true,
        }
    }

    /// Takes bytes up to the end of the message; answers how many were taken. Bytes after the end
    /// belong to the next response. After a broken rule everything is taken and nothing told.
    pub fn feed(&mut self, input: &[u8], mut sink: impl FnMut(ResponseEvent<'_>)) -> usize {
        let mut at = 0;
        while at < input.len() && !self.is_complete() {
            let Ok(taken) = self.step(&input[at..], at, &mut sink) else {
                self.stop();
                self.offset += count(input.len() - at);
                return input.len();
            };
            at += taken;
            self.offset += count(taken);
            if self.is_complete() {
                self.ledger.complete();
                sink(ResponseEvent::End);
            }
        }
        at
    }

    /// `bytes` bytes were lost or not captured: the verdict becomes unknown. Answers how many of
    /// them belong to this message; the decoder stays in step where the length is known.
    pub fn gap(&mut self, bytes: u64) -> u64 {
        if bytes == 0 || self.is_complete() {
            return 0;
        }
        self.ledger.lose(UnknownCause::LostBytes);
        let taken = match &mut self.state {
            State::Body(body) => body.skip(bytes),
            State::Head(_) => {
                self.state = State::Stopped;
                bytes
            }
            State::Stopped => bytes,
        };
        self.offset += taken;
        taken
    }

    /// The connection ended. True when that is the message's own end.
    pub fn close(&mut self, close: Close) -> bool {
        let State::Body(body) = &mut self.state else { return false };
        let ends = body.close(close);
        if ends {
            self.ledger.complete();
        }
        ends
    }

    /// `bytes` bytes followed this response's end although no request was outstanding.
    pub fn excess(&mut self, bytes: u64) {
        if bytes > 0 && self.is_complete() {
            self.ledger.invalidate(Rule::ExcessBytes, self.offset);
        }
    }

    /// The verdict so far.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.ledger.framing()
    }

    /// Tolerated departures so far.
    #[must_use]
    pub fn tolerated(&self) -> &Tolerated {
        self.ledger.tolerated()
    }

    /// The message has reached its own end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(&self.state, State::Body(body) if body.is_done())
    }

    /// Bytes of this response taken so far, interim responses and framing included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    /// The connection may carry another response: the message is complete and nobody asked to close.
    #[must_use]
    pub fn keep_alive(&self) -> bool {
        self.is_complete() && self.keep_alive
    }

    fn stop(&mut self) {
        self.state = State::Stopped;
        self.keep_alive = false;
    }

    fn step(
        &mut self,
        input: &[u8],
        at: usize,
        sink: &mut impl FnMut(ResponseEvent<'_>),
    ) -> Result<usize, Broken> {
        match &mut self.state {
            State::Stopped => Ok(input.len()),
            State::Body(body) => {
                body.feed(input, self.offset, &mut self.ledger, &mut |bytes, inner| {
                    sink(ResponseEvent::Body { bytes, at: at + inner });
                })
            }
            State::Head(section) => {
                let (taken, whole) = section.feed(input, self.section_start, &mut self.ledger)?;
                if whole {
                    self.end_head(self.offset + count(taken), sink)?;
                }
                Ok(taken)
            }
        }
    }

    fn end_head(
        &mut self,
        next: u64,
        sink: &mut impl FnMut(ResponseEvent<'_>),
    ) -> Result<(), Broken> {
        let State::Head(section) = &self.state else { return Ok(()) };
        let base = self.section_start + section.dropped();
        let (status, body) = read_head(section.bytes(), base, self.method, &mut self.ledger, sink)
            .map(|(status, body, keep_alive)| {
                self.keep_alive = keep_alive;
                (status, body)
            })?;
        if status < 200 && status != 101 {
            self.state = State::Head(Section::new(SectionKind::ResponseHead));
            self.section_start = next;
        } else {
            self.state = State::Body(Body::new(body, &mut self.ledger));
        }
        Ok(())
    }
}

fn read_head(
    bytes: &[u8],
    base: u64,
    method: Method,
    ledger: &mut Ledger,
    sink: &mut impl FnMut(ResponseEvent<'_>),
) -> Result<(u16, BodyKind, bool), Broken> {
    let line_end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
    let lines = check_lines(&bytes[line_end..], base + count(line_end), ledger)?;
    let mut room = vec![EMPTY_HEADER; lines];
    let mut parsed = Response::new(&mut room);
    let outcome = ParserConfig::default()
        .allow_obsolete_multiline_headers_in_responses(true)
        .parse_response(&mut parsed, bytes);
    let (Ok(httparse::Status::Complete(_)), Some(status), Some(version_minor)) =
        (outcome, parsed.code, parsed.version)
    else {
        ledger.note(Rule::StartLine, base)?;
        return Err(Broken);
    };
    check_status_line(&bytes[..line_end], status, base, ledger)?;
    let fields = Fields::new(parsed.headers);
    let body = of_response(method, status, version_minor, fields, base, ledger)?;
    if status < 200 && status != 101 {
        sink(ResponseEvent::Interim(status));
        return Ok((status, body, true));
    }
    let keep_alive = keeps_alive(version_minor, fields, body);
    let transfer_coded = matches!(body, BodyKind::Chunked | BodyKind::UntilClose)
        && transfer_codings(fields, base, ledger)?.is_some_and(|codings| codings.coded);
    sink(ResponseEvent::Head(ResponseHead {
        status,
        version_minor,
        body,
        transfer_coded,
        keep_alive,
        fields,
    }));
    Ok((status, body, keep_alive))
}

fn check_status_line(
    line: &[u8],
    status: u16,
    base: u64,
    ledger: &mut Ledger,
) -> Result<(), Broken> {
    /// `HTTP/1.1 200`: where the space before the reason phrase belongs.
    const STATUS_END: usize = 12;
    if line.get(STATUS_END) != Some(&b' ') {
        ledger.note(Rule::MissingReasonSpace, base + count(STATUS_END))?;
    }
    if !(100..=599).contains(&status) {
        ledger.note(Rule::StatusCode, base)?;
    }
    Ok(())
}
