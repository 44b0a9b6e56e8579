//! A capture file as a source: the same records as from the kernel, on the file's own clock.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use protocol::Nanos;

use super::error::{OpenError, Stop};
use super::link::LinkType;
use super::packet::{Other, Packet, parse};
use super::reader::{Format, Reader};
use super::views::Views;
use crate::capture::{CaptureCounters, CaptureError, CaptureEvent, CaptureSource, Segment};
use crate::clock::Clock;
use crate::source::LiveSource;

/// Time between two looks at the clock, as in the live agent: patience with what is missing runs out
/// between records just as it would have while they arrived.
const TICK_NS: u64 = 10_000_000;
/// Frames handed over per call at most, so that the caller can show progress.
const BATCH: usize = 16_384;
/// Kinds of links counted by themselves.
const MAX_LINKS: usize = 64;

/// The clock of a file: the latest stamp read so far.
#[derive(Clone, Debug, Default)]
pub struct FileClock(Arc<AtomicU64>);

impl FileClock {
    fn advance(&self, stamp: Nanos) {
        self.0.fetch_max(stamp.get(), Ordering::Relaxed);
    }
}

impl Clock for FileClock {
    fn now(&self) -> Nanos {
        Nanos::new(self.0.load(Ordering::Relaxed))
    }
}

/// What a file was like, beyond the counters that every source has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// First stamp in the file's order.
    pub first: Option<Nanos>,
    /// Latest stamp.
    pub last: Option<Nanos>,
    /// Segments of endpoints of which not every payload byte was captured.
    pub cut_segments: u64,
    /// Records without a stamp: they get the latest one before them.
    pub unstamped: u64,
    /// Packets that the capturing program says it lost.
    pub dropped: u64,
    /// Frames of link types that are not read, by type.
    pub unknown_links: BTreeMap<LinkType, u64>,
}

/// A capture file.
pub struct FileSource<R> {
    reader: Reader<R>,
    /// Few: comparing costs less than hashing, for each packet twice.
    endpoints: BTreeSet<SocketAddr>,
    clock: FileClock,
    /// Where the current tick began.
    tick: Option<Nanos>,
    /// The frame read last has not been handed over.
    held: bool,
    end: Option<Result<(), Stop>>,
    counters: CaptureCounters,
    facts: FileFacts,
    views: Views,
}

impl<R: Read> FileSource<R> {
    /// A source over `reader` that hands over segments of `endpoints` (in canonical form).
    ///
    /// # Errors
    /// When this is no capture.
    pub fn open(
        reader: R,
        endpoints: impl IntoIterator<Item = SocketAddr>,
    ) -> Result<Self, OpenError> {
        Ok(Self {
            reader: Reader::open(reader)?,
            endpoints: endpoints.into_iter().collect(),
            clock: FileClock::default(),
            tick: None,
            held: false,
            end: None,
            counters: CaptureCounters::default(),
            facts: FileFacts::default(),
            views: Views::default(),
        })
    }

    /// The clock of the records.
    #[must_use]
    pub fn clock(&self) -> FileClock {
        self.clock.clone()
    }

    /// How the file ended; `None` while there is more.
    #[must_use]
    pub fn end(&self) -> Option<&Result<(), Stop>> {
        self.end.as_ref()
    }

    /// Facts so far.
    #[must_use]
    pub fn facts(&self) -> FileFacts {
        FileFacts { dropped: self.reader.dropped(), ..self.facts.clone() }
    }

    /// Counters so far.
    #[must_use]
    pub fn counted(&self) -> CaptureCounters {
        self.counters
    }

    /// Bytes of the file read so far.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.reader.position()
    }

    /// Which format it is.
    #[must_use]
    pub fn format(&self) -> Format {
        self.reader.format()
    }

    /// Name of the interface that a record's `ifindex` stands for.
    #[must_use]
    pub fn interface_name(&self, ifindex: u32) -> String {
        self.views.name(ifindex).map_or_else(|| ifindex.to_string(), str::to_owned)
    }

    /// Hands over the records up to the next tick, or a batch. Returns how many frames were read.
    pub fn step(&mut self, sink: &mut dyn FnMut(CaptureEvent<'_>)) -> usize {
        let mut frames = 0;
        while frames < BATCH && self.end.is_none() {
            if !std::mem::take(&mut self.held) && !self.advance() {
                break;
            }
            if self.begins_tick() {
                self.held = true;
                break;
            }
            self.hand_over(sink);
            frames += 1;
        }
        frames
    }

    fn advance(&mut self) -> bool {
        match self.reader.advance() {
            Ok(true) => true,
            Ok(false) => {
                self.end = Some(Ok(()));
                false
            }
            Err(stop) => {
                self.end = Some(Err(stop));
                false
            }
        }
    }

    /// Whether time goes on before the current frame; its stamp is noted.
    fn begins_tick(&mut self) -> bool {
        let Some(stamp) = self.reader.frame().and_then(|frame| frame.stamp) else { return false };
        let begun = self.tick.is_some_and(|tick| stamp.since(tick) >= TICK_NS.cast_signed());
        if begun || self.tick.is_none() {
            self.tick = Some(stamp);
        }
        self.clock.advance(stamp);
        begun
    }

    fn hand_over(&mut self, sink: &mut dyn FnMut(CaptureEvent<'_>)) {
        let Self { reader, endpoints, clock, counters, facts, views, .. } = self;
        let Some(frame) = reader.frame() else { return };
        counters.packets += 1;
        note_stamp(facts, frame.stamp);
        let packet = match parse(&frame) {
            Ok(packet) => packet,
            Err(other) => return note_other(counters, facts, other),
        };
        let from_endpoint = endpoints.contains(&packet.source);
        if !from_endpoint && !endpoints.contains(&packet.destination) {
            return;
        }
        counters.endpoint_packets += 1;
        // As from the kernel: a bare acknowledgement's number rides on the next payload.
        let control = packet.flags.syn() || packet.flags.fin() || packet.flags.rst();
        if packet.payload_len == 0 && !control {
            return;
        }
        let cut = u32::try_from(packet.payload.len()).is_ok_and(|len| len < packet.payload_len);
        facts.cut_segments += u64::from(cut);
        counters.segments.attempted += 1;
        counters.segments.consumed += 1;
        let ifindex =
            views.number(frame.interface, packet.hop, || reader.interface_name(frame.interface));
        let stamp = frame.stamp.unwrap_or_else(|| clock.now());
        sink(CaptureEvent::Segment(segment(&packet, stamp, ifindex, from_endpoint)));
    }
}

fn segment<'a>(
    packet: &Packet<'a>,
    stamp: Nanos,
    ifindex: u32,
    from_endpoint: bool,
) -> Segment<'a> {
    Segment {
        stamp,
        ifindex,
        source: packet.source,
        destination: packet.destination,
        from_endpoint,
        seq: packet.seq,
        ack: packet.ack,
        flags: packet.flags,
        payload_len: packet.payload_len,
        piece_offset: 0,
        payload: packet.payload,
        cpu: 0,
    }
}

fn note_stamp(facts: &mut FileFacts, stamp: Option<Nanos>) {
    facts.unstamped += u64::from(stamp.is_none());
    facts.first = facts.first.or(stamp);
    facts.last = facts.last.max(stamp);
}

fn note_other(counters: &mut CaptureCounters, facts: &mut FileFacts, other: Other) {
    match other {
        Other::Foreign => {}
        Other::Unparsed => counters.unparsed_packets += 1,
        Other::UnknownLink(link) => {
            counters.unparsed_packets += 1;
            let known = facts.unknown_links.len();
            if known < MAX_LINKS || facts.unknown_links.contains_key(&LinkType(link)) {
                *facts.unknown_links.entry(LinkType(link)).or_insert(0) += 1;
            }
        }
    }
}

impl<R: Read + Send> CaptureSource for FileSource<R> {
    /// Never waits: the clock is the file's.
    fn poll(
        &mut self,
        _timeout: Duration,
        sink: &mut dyn FnMut(CaptureEvent<'_>),
    ) -> Result<usize, CaptureError> {
        let before = self.counters.segments.consumed;
        self.step(sink);
        let taken = self.counters.segments.consumed - before;
        Ok(usize::try_from(taken).unwrap_or(usize::MAX))
    }

    /// Nothing: on the file's clock the records still unread have not been captured yet.
    fn drain(&mut self, _sink: &mut dyn FnMut(CaptureEvent<'_>)) -> Result<usize, CaptureError> {
        Ok(0)
    }

    fn counters(&mut self) -> Result<CaptureCounters, CaptureError> {
        Ok(self.counters)
    }

    fn name(&self) -> &'static str {
        "file"
    }
}

impl<R: Read + Send> LiveSource for FileSource<R> {}
