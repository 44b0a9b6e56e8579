//! Incremental decoder of one request, able to pass over body bytes that were not captured.

use httparse::{EMPTY_HEADER, Request};

use super::body::Body;
use super::fields::{Fields, check_lines};
use super::framing::{Broken, Close, Framing, Ledger, Tolerated, UnknownCause};
use super::length::{BodyKind, Method, keeps_alive, of_request};
use super::number::count;
use super::rule::{Direction, Rule};
use super::section::{Section, SectionKind};

/// The head of a request, as lent to the sink.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// Method token.
    pub method: &'a str,
    /// Request target.
    pub target: &'a str,
    /// Minor version: 0 or 1.
    pub version_minor: u8,
    /// How the body's end is found.
    pub body: BodyKind,
    /// The client lets the connection carry another request after this one.
    pub keep_alive: bool,
    /// The fields.
    pub fields: Fields<'a>,
}

/// What the decoder tells its sink, in the order of the wire.
#[derive(Clone, Copy, Debug)]
pub enum RequestEvent<'a> {
    /// The head ended.
    Head(RequestHead<'a>),
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
    Stopped,
}

/// Decoder of one request.
#[derive(Clone, Debug)]
pub struct RequestDecoder {
    state: State,
    ledger: Ledger,
    offset: u64,
    bytes_unseen: u64,
    head_bytes: Option<u64>,
    keep_alive: bool,
}

impl Default for RequestDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl RequestDecoder {
    /// A decoder at the first byte of a request.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::Head(Section::new(SectionKind::RequestHead)),
            ledger: Ledger::new(Direction::Request),
            offset: 0,
            bytes_unseen: 0,
            head_bytes: None,
            keep_alive: true,
        }
    }

    /// Takes bytes up to the end of the message; answers how many were taken. Bytes after the end
    /// belong to the next request. After a broken rule everything is taken and nothing told.
    pub fn feed(&mut self, input: &[u8], mut sink: impl FnMut(RequestEvent<'_>)) -> usize {
        let mut at = 0;
        while at < input.len() && !self.is_complete() {
            let Ok(taken) = self.step(&input[at..], at, &mut sink) else {
                self.state = State::Stopped;
                self.offset += count(input.len() - at);
                return input.len();
            };
            at += taken;
            self.offset += count(taken);
            if self.is_complete() {
                self.ledger.complete();
                sink(RequestEvent::End);
            }
        }
        at
    }

    /// `bytes` bytes passed on the wire but were not captured. Answers how many of them belong to
    /// this request: with a declared length the message's end is still found, the verdict stays
    /// open and [`Self::bytes_unseen`] says how much it rests on; otherwise it becomes unknown.
    pub fn skip(&mut self, bytes: u64) -> u64 {
        if bytes == 0 || self.is_complete() {
            return 0;
        }
        let taken = match &mut self.state {
            State::Body(body @ Body::Length(_)) => body.skip(bytes),
            State::Body(body) => {
                self.ledger.lose(UnknownCause::LostBytes);
                body.skip(bytes)
            }
            State::Head(_) | State::Stopped => {
                self.ledger.lose(UnknownCause::LostBytes);
                self.state = State::Stopped;
                bytes
            }
        };
        self.offset += taken;
        self.bytes_unseen += taken;
        if self.is_complete() {
            self.ledger.complete();
        }
        taken
    }

    /// The sending direction ended. A request cut short stays [`Framing::Incomplete`].
    pub fn close(&mut self, _close: Close) {
        self.keep_alive = false;
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

    /// Bytes of this request taken so far, framing and unseen bytes included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    /// Bytes of the head with its empty line, once it has ended.
    #[must_use]
    pub fn head_bytes(&self) -> Option<u64> {
        self.head_bytes
    }

    /// Bytes that were passed over unseen.
    #[must_use]
    pub fn bytes_unseen(&self) -> u64 {
        self.bytes_unseen
    }

    /// Body bytes still to come, where a declared length tells.
    #[must_use]
    pub fn body_remaining(&self) -> Option<u64> {
        match &self.state {
            State::Body(Body::Length(left)) => Some(*left),
            State::Body(Body::Done) => Some(0),
            _ => None,
        }
    }

    /// The connection may carry another request.
    #[must_use]
    pub fn keep_alive(&self) -> bool {
        self.is_complete() && self.keep_alive
    }

    fn step(
        &mut self,
        input: &[u8],
        at: usize,
        sink: &mut impl FnMut(RequestEvent<'_>),
    ) -> Result<usize, Broken> {
        match &mut self.state {
            State::Stopped => Ok(input.len()),
            State::Body(body) => {
                body.feed(input, self.offset, &mut self.ledger, &mut |bytes, inner| {
                    sink(RequestEvent::Body { bytes, at: at + inner });
                })
            }
            State::Head(section) => {
                let (taken, whole) = section.feed(input, 0, &mut self.ledger)?;
                if whole {
                    let base = section.dropped();
                    let (body, keep_alive) =
                        read_head(section.bytes(), base, &mut self.ledger, sink)?;
                    self.head_bytes = Some(self.offset + count(taken));
                    self.keep_alive = keep_alive;
                    self.state = State::Body(Body::new(body, &mut self.ledger));
                }
                Ok(taken)
            }
        }
    }
}

fn read_head(
    bytes: &[u8],
    base: u64,
    ledger: &mut Ledger,
    sink: &mut impl FnMut(RequestEvent<'_>),
) -> Result<(BodyKind, bool), Broken> {
    let line_end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
    let lines = check_lines(&bytes[line_end..], base + count(line_end), ledger)?;
    let mut room = vec![EMPTY_HEADER; lines];
    let mut parsed = Request::new(&mut room);
    let outcome = parsed.parse(bytes);
    let (Ok(httparse::Status::Complete(_)), Some(method), Some(target), Some(version_minor)) =
        (outcome, parsed.method, parsed.path, parsed.version)
    else {
        ledger.note(Rule::StartLine, base)?;
        return Err(Broken);
    };
    let fields = Fields::new(parsed.headers);
    let body = of_request(Method::from_token(method), version_minor, fields, base, ledger)?;
    let keep_alive = keeps_alive(version_minor, fields, body);
    let head = RequestHead { method, target, version_minor, body, keep_alive, fields };
    sink(RequestEvent::Head(head));
    Ok((body, keep_alive))
}
