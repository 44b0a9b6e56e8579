//! One request at a time: health checks and the unloaded baseline.

use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64};

use protocol::TraceId;
use socket2::{Domain, Protocol, Socket, Type};

use super::config::{Connections, RequestLimits, Tuning};
use super::connection::Instruments;
use super::error::ReplayError;
use super::receive::enable_stamps;
use super::source::{Prepared, Source};
use super::target::Target;
use super::token::BearerToken;
use super::wire::Head;
use super::worker::{Shared, Worker};
use crate::clock::{Clock, RealtimeMap};
use crate::prompt::Body;
use crate::records::RequestRecord;

/// Keeps the kernel's stamping switched on: the first read after it was enabled can carry no stamp.
#[derive(Debug)]
pub(super) struct StampKeeper(
    #[expect(dead_code, reason = "held open, never used")] Option<Socket>,
);

impl StampKeeper {
    /// Without a socket, reads fall back to the client's clock one by one, which each record shows.
    pub(super) fn open() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM.cloexec(), Some(Protocol::TCP)).ok();
        if let Some(socket) = &socket {
            enable_stamps(socket.as_fd());
        }
        Self(socket)
    }
}

/// Sends single streamed requests with the same socket loop as a run.
pub struct Client<'a> {
    target: &'a Target,
    bearer: Option<&'a BearerToken>,
    limits: RequestLimits,
    clock: &'a dyn Clock,
    realtime: RealtimeMap,
    connections: AtomicU64,
    _keeper: StampKeeper,
}

impl<'a> Client<'a> {
    /// A client for one target.
    #[must_use]
    pub fn new(
        target: &'a Target,
        bearer: Option<&'a BearerToken>,
        limits: RequestLimits,
        clock: &'a dyn Clock,
    ) -> Self {
        Self {
            target,
            bearer,
            limits,
            clock,
            realtime: RealtimeMap::new(clock),
            connections: AtomicU64::new(0),
            _keeper: StampKeeper::open(),
        }
    }

    /// Sends `body` now on a fresh connection and follows it to its end; planned is now. `index` is
    /// copied into the record. Setting `stop` ends it as `cancelled_by_tool`.
    ///
    /// # Errors
    /// [`ReplayError::Loop`] when the event loop fails; whatever becomes of the request is a record.
    pub fn one(
        &self,
        index: u64,
        trace_id: TraceId,
        body: &Body,
        stop: &AtomicBool,
    ) -> Result<RequestRecord, ReplayError> {
        self.realtime.refresh(self.clock);
        let bytes = Head { target: self.target, bearer: self.bearer }.request(trace_id, body);
        let oversized = body.exceeds_inspection();
        let planned = self.clock.now();
        let source = Source::single(Prepared { index, trace_id, planned, bytes, oversized });
        let shared = Shared {
            address: self.target.address(),
            limits: self.limits,
            instruments: Instruments {
                clock: self.clock,
                realtime: &self.realtime,
                tuning: Tuning::default(),
            },
            stop,
            connections: &self.connections,
            oversized: &AtomicU64::new(0),
            reuse: Connections::Fresh,
        };
        let mut ended = None;
        Worker::new(shared, source)?.run(&mut |record| ended = Some(record))?;
        ended.ok_or_else(|| ReplayError::Accounting {
            recorded: 0,
            attempted: 1,
            detail: "the request has no record".to_owned(),
        })
    }

    /// Steps of CLOCK_REALTIME seen between requests.
    #[must_use]
    pub fn clock_steps(&self) -> u64 {
        self.realtime.steps()
    }
}
