//! The requests of one event loop, built ahead of their time.

use std::collections::VecDeque;

use protocol::{Nanos, TraceId};

use super::error::ReplayError;
use super::wire::Head;
use crate::prompt::{BodyOptions, Salt, body};
use crate::schedule::Planned;
use crate::trace::Trace;

/// Built requests kept per event loop: enough for a burst, little enough for a small host.
const LOOKAHEAD_BYTES: usize = 16 * 1024 * 1024;

/// A request ready to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prepared {
    pub(super) index: u64,
    pub(super) trace_id: TraceId,
    pub(super) planned: Nanos,
    pub(super) bytes: Vec<u8>,
    pub(super) oversized: bool,
}

impl Prepared {
    /// The bytes are with the kernel: thousands of streams in flight must not keep their prompts.
    pub(super) fn release_bytes(&mut self) {
        self.bytes = Vec::new();
    }
}

/// Builds request bytes from rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Builder<'a> {
    pub(super) head: Head<'a>,
    pub(super) trace: &'a Trace,
    pub(super) options: &'a BodyOptions,
    pub(super) salt: Option<Salt>,
}

impl Builder<'_> {
    fn build(&self, planned: &Planned, start: Nanos) -> Result<Prepared, ReplayError> {
        let row = self.trace.rows().get(planned.row).ok_or(ReplayError::Row(planned.row))?;
        let body = body(row, self.salt, self.options)?;
        Ok(Prepared {
            index: planned.index,
            trace_id: planned.trace_id,
            planned: at(start, planned),
            bytes: self.head.request(planned.trace_id, &body),
            oversized: body.exceeds_inspection(),
        })
    }
}

fn at(start: Nanos, planned: &Planned) -> Nanos {
    Nanos::new(start.get().saturating_add(planned.offset_ns))
}

/// Planned requests of one event loop, in order of time.
pub(super) struct Source<'a> {
    builder: Option<Builder<'a>>,
    waiting: VecDeque<Planned>,
    ready: VecDeque<Prepared>,
    ready_bytes: usize,
    start: Nanos,
}

impl<'a> Source<'a> {
    /// Every `of`-th request from the `first`-th on. Instants count from 0 until [`Self::start_at`].
    pub(super) fn share(
        builder: Builder<'a>,
        requests: &[Planned],
        first: usize,
        of: usize,
    ) -> Self {
        let waiting = requests.iter().skip(first).step_by(of).copied().collect();
        let (ready, ready_bytes) = (VecDeque::new(), 0);
        Self { builder: Some(builder), waiting, ready, ready_bytes, start: Nanos::new(0) }
    }

    /// One request that is ready.
    pub(super) fn single(prepared: Prepared) -> Self {
        let (ready_bytes, start) = (prepared.bytes.len(), prepared.planned);
        Self {
            builder: None,
            waiting: VecDeque::new(),
            ready: [prepared].into(),
            ready_bytes,
            start,
        }
    }

    /// Fixes the instant that offsets count from.
    pub(super) fn start_at(&mut self, start: Nanos) {
        let forward = start.get() - self.start.get();
        self.start = start;
        for prepared in &mut self.ready {
            prepared.planned = Nanos::new(prepared.planned.get().saturating_add(forward));
        }
    }

    /// Builds one request unless enough are ready; true when it did.
    pub(super) fn build_one(&mut self) -> Result<bool, ReplayError> {
        if self.ready_bytes >= LOOKAHEAD_BYTES {
            return Ok(false);
        }
        let (Some(builder), Some(planned)) = (&self.builder, self.waiting.pop_front()) else {
            return Ok(false);
        };
        let prepared = builder.build(&planned, self.start)?;
        self.ready_bytes += prepared.bytes.len();
        self.ready.push_back(prepared);
        Ok(true)
    }

    /// When the next request is due.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        let ready = self.ready.front().map(|prepared| prepared.planned);
        ready.or_else(|| self.waiting.front().map(|planned| at(self.start, planned)))
    }

    /// Takes the next request if it is due at `now`.
    pub(super) fn pop_due(&mut self, now: Nanos) -> Result<Option<Prepared>, ReplayError> {
        if self.next_due().is_none_or(|due| due > now) {
            return Ok(None);
        }
        if self.ready.is_empty() {
            self.build_one()?;
        }
        let prepared = self.ready.pop_front();
        self.ready_bytes -= prepared.as_ref().map_or(0, |prepared| prepared.bytes.len());
        Ok(prepared)
    }

    /// Everything that was not sent.
    pub(super) fn drain(&mut self) -> Vec<(u64, TraceId, Nanos)> {
        let start = self.start;
        let ready = self.ready.drain(..).map(|ready| (ready.index, ready.trace_id, ready.planned));
        let waiting = self.waiting.drain(..);
        ready.chain(waiting.map(|plan| (plan.index, plan.trace_id, at(start, &plan)))).collect()
    }
}
