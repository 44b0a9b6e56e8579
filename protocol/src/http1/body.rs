//! Decoder of one message body, whatever ends it; shared by both directions.

use super::chunked::Chunked;
use super::framing::{Broken, Close, Ledger, UnknownCause};
use super::length::BodyKind;
use super::number::{clamp, count};

/// A body under way.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    /// Bytes that cannot be assigned to any message: a tunnel, or after a broken or lost framing.
    Opaque,
    Done,
}

impl Body {
    pub(crate) fn new(kind: BodyKind, ledger: &mut Ledger) -> Self {
        match kind {
            BodyKind::None | BodyKind::Length(0) => Self::Done,
            BodyKind::Length(bytes) => Self::Length(bytes),
            BodyKind::Chunked => Self::Chunked(Chunked::new()),
            BodyKind::UntilClose => Self::UntilClose,
            BodyKind::Tunnel => {
                ledger.lose(UnknownCause::Opaque);
                Self::Opaque
            }
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }

    /// Takes bytes up to the end of the body; see [`Chunked::feed`].
    pub(crate) fn feed(
        &mut self,
        input: &[u8],
        base: u64,
        ledger: &mut Ledger,
        sink: &mut dyn FnMut(&[u8], usize),
    ) -> Result<usize, Broken> {
        let taken = match self {
            Self::Length(left) => {
                let taken = clamp(input.len(), *left);
                *left -= count(taken);
                sink(&input[..taken], 0);
                taken
            }
            Self::Chunked(chunked) => chunked.feed(input, base, ledger, sink)?,
            Self::UntilClose => {
                sink(input, 0);
                input.len()
            }
            Self::Opaque => input.len(),
            Self::Done => 0,
        };
        self.settle();
        Ok(taken)
    }

    /// Passes over unseen bytes; answers how many of them belong to this body.
    pub(crate) fn skip(&mut self, bytes: u64) -> u64 {
        let taken = match self {
            Self::Length(left) => {
                let taken = bytes.min(*left);
                *left -= taken;
                taken
            }
            Self::Chunked(chunked) => {
                if !chunked.skip(bytes) {
                    *self = Self::Opaque;
                }
                bytes
            }
            Self::UntilClose | Self::Opaque => bytes,
            Self::Done => 0,
        };
        self.settle();
        taken
    }

    /// The connection ended; true when that is this body's own end.
    pub(crate) fn close(&mut self, close: Close) -> bool {
        let ends = matches!(self, Self::UntilClose) && close == Close::Eof;
        if ends {
            *self = Self::Done;
        }
        ends
    }

    fn settle(&mut self) {
        let done = match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunked) => chunked.is_done(),
            _ => false,
        };
        if done {
            *self = Self::Done;
        }
    }
}
