//! Carries the backend's answer to the client, piece by piece as it comes.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use protocol::Nanos;
use protocol::http1::{Framing, ResponseDecoder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Gateway;
use super::route::Endpoint;
use super::session::Client;
use crate::clock::{Alarm, monotonic_now};
use crate::fault::GatewayFault;

/// Bytes read from a backend at once.
const PIECE: usize = 64 * 1024;
/// Pieces held at most while they are delayed.
const MAX_HELD: usize = 4_096;

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The backend closed after an answer with this status.
    Answered(u16),
    /// An answer with this status ended by its framing, and the backend keeps the connection.
    Kept(u16),
    /// The backend closed before its first byte.
    NoAnswer,
    /// The backend reset the connection within the answer.
    BackendReset,
    /// The client closed first and the backend's connection was dropped for it; the answer's status
    /// when it had begun.
    ClientLeft(Option<u16>),
}

/// Relays until either side ends, or with `end` until the answer does. The backend's bytes are never
/// changed, whatever they are.
pub(super) async fn relay(
    gateway: &Gateway,
    client: &mut Client,
    backend: &mut TcpStream,
    endpoint: &Endpoint,
    fault: Option<GatewayFault>,
    mut end: Option<ResponseDecoder>,
) -> io::Result<Ended> {
    let mut held = Held::new(fault)?;
    let mut status = None;
    let mut buffer = BytesMut::with_capacity(PIECE);
    let last = loop {
        buffer.reserve(PIECE);
        tokio::select! {
            // What is due goes out before more is taken in.
            biased;
            piece = held.due() => client.output.write_all(&piece?).await?,
            () = client.input.gone() => {
                // Unsent bytes must not linger: the backend has to learn at once.
                backend.set_zero_linger()?;
                return Ok(Ended::ClientLeft(status));
            }
            read = backend.read_buf(&mut buffer), if !held.full() => match read {
                Ok(0) => break Last::End,
                Err(_) => break Last::Reset,
                Ok(n) => {
                    endpoint.bytes.fetch_add(n as u64, Ordering::Relaxed);
                    let piece = buffer.split().freeze();
                    status.get_or_insert_with(|| status_of(&piece));
                    let whole = ends(&mut end, &piece);
                    held.push(piece)?;
                    if whole {
                        break Last::Whole;
                    }
                }
            }
        }
    };
    while let Some(piece) = held.rest().await? {
        client.output.write_all(&piece).await?;
    }
    gateway.counters.relayed();
    Ok(match (status, last) {
        (Some(status), Last::Whole) => Ended::Kept(status),
        (Some(_), Last::Reset) => Ended::BackendReset,
        (Some(status), Last::End) => Ended::Answered(status),
        (None, _) => Ended::NoAnswer,
    })
}

/// What stopped the reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Whole,
    End,
    Reset,
}

/// True when `piece` ends the answer exactly and the connection may be kept. Bytes that break the framing
/// or follow the end leave only the backend's close as an end.
fn ends(end: &mut Option<ResponseDecoder>, piece: &[u8]) -> bool {
    let Some(decoder) = end else { return false };
    let used = decoder.feed(piece, |_| {});
    if used < piece.len() || matches!(decoder.framing(), Framing::Invalid { .. }) {
        *end = None;
        return false;
    }
    decoder.keep_alive()
}

/// The status in a response's first piece; 0 where that is not one.
fn status_of(piece: &[u8]) -> u16 {
    let digits = piece.get(9..12).and_then(|d| std::str::from_utf8(d).ok());
    digits.and_then(|d| d.parse().ok()).unwrap_or(0)
}

/// Pieces that wait for their time; without a fault that is at once.
struct Held {
    /// Only where something is delayed: each alarm costs a descriptor.
    alarm: Option<Alarm>,
    wait: Duration,
    coalesce: bool,
    pieces: VecDeque<(Nanos, Bytes)>,
}

impl Held {
    fn new(fault: Option<GatewayFault>) -> io::Result<Self> {
        let (wait, coalesce) = match fault {
            None => (Duration::ZERO, false),
            Some(GatewayFault::WrongReceipt) => (Duration::ZERO, false),
            Some(GatewayFault::HoldChunks(wait)) => (wait, false),
            Some(GatewayFault::Coalesce(wait)) => (wait, true),
        };
        let alarm = fault.map(|_| Alarm::new()).transpose()?;
        Ok(Self { alarm, wait, coalesce, pieces: VecDeque::new() })
    }

    fn full(&self) -> bool {
        self.pieces.len() >= MAX_HELD
    }

    fn push(&mut self, piece: Bytes) -> io::Result<()> {
        let wait = u64::try_from(self.wait.as_nanos()).unwrap_or(u64::MAX);
        let due = Nanos::new(monotonic_now()?.get().saturating_add(wait));
        self.pieces.push_back((due, piece));
        Ok(())
    }

    /// The next piece, when its time has come; never without pieces.
    async fn due(&mut self) -> io::Result<Bytes> {
        let Some((due, _)) = self.pieces.front() else { return std::future::pending().await };
        if let Some(alarm) = &self.alarm {
            alarm.wait_until(*due).await?;
        }
        Ok(self.take())
    }

    /// The next piece in its time; `None` when all are out.
    async fn rest(&mut self) -> io::Result<Option<Bytes>> {
        if self.pieces.is_empty() { Ok(None) } else { self.due().await.map(Some) }
    }

    fn take(&mut self) -> Bytes {
        if !self.coalesce {
            return self.pieces.pop_front().map(|(_, piece)| piece).unwrap_or_default();
        }
        let mut all = BytesMut::new();
        self.pieces.drain(..).for_each(|(_, piece)| all.extend_from_slice(&piece));
        all.freeze()
    }
}
