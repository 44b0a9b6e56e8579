//! A capture file from end to end: which servers are in it, and what their streams were like.
//!
//! The file goes through the same flows as live capture. Its clock is that of its stamps.

mod cause;
mod listeners;
mod summary;

use std::io::Read;
use std::time::Duration;

use protocol::Nanos;
use serde::Serialize;

pub use cause::Cause;
pub use listeners::{Listener, Listeners, find_listeners};
pub use summary::{EndpointSummary, FramingCounts, Quantiles};

use crate::capture::CaptureEvent;
use crate::capture::pcap::{FileFacts, FileSource, Stop};
use crate::clock::Clock as _;
use crate::endpoint::{Endpoint, Role};
use crate::flow::{FlowEvent, FlowLimits, FlowTable};
use crate::observation::{FILE_CLOCK, Observation};
use crate::window::{Reason, Snapshot, WindowCounters, reasons};
use summary::Summaries;

/// Name and version of a report.
pub const SCHEMA: &str = "goodput.read/1";
/// Nothing comes after the end of a file: time is let pass there until no flow waits any more.
const AFTER_END: Duration = Duration::from_secs(10);

/// What a file showed. Stamps are nanoseconds of the file's clock.
#[derive(Clone, Debug, Serialize)]
pub struct ReadReport {
    schema: &'static str,
    /// Format of the file.
    pub format: &'static str,
    clock: &'static str,
    /// Everything that belongs to the endpoints was seen.
    pub complete: bool,
    /// Why not.
    pub causes: Vec<Cause>,
    /// First stamp.
    pub first_ns: Option<Nanos>,
    /// Latest stamp.
    pub last_ns: Option<Nanos>,
    /// Requests that were still in flight at the end; they have no row.
    pub open_requests: usize,
    /// Counters, as for a window of live capture.
    pub counters: WindowCounters,
    /// One per endpoint, in order.
    pub endpoints: Vec<EndpointSummary>,
}

/// One file on its way through the flows.
struct Run<'a, R> {
    source: FileSource<R>,
    flows: FlowTable,
    summaries: Summaries,
    observe: &'a mut dyn FnMut(&Observation),
}

/// Reads `source`, which must have been opened for `endpoints`. Every request goes to `observe`;
/// `progress` gets the bytes read so far.
pub fn read<R: Read>(
    source: FileSource<R>,
    endpoints: &[Endpoint],
    observe: &mut dyn FnMut(&Observation),
    progress: &mut dyn FnMut(u64),
) -> ReadReport {
    let addresses = endpoints.iter().map(|endpoint| endpoint.address);
    let flows = FlowTable::new(addresses, FlowLimits::default());
    let mut run = Run { source, flows, summaries: Summaries::new(endpoints), observe };
    while run.source.end().is_none() {
        run.step();
        progress(run.source.position());
    }
    run.finish()
}

impl<R: Read> Run<'_, R> {
    fn step(&mut self) {
        let Self { source, flows, .. } = self;
        source.step(&mut |event| {
            if let CaptureEvent::Segment(segment) = event {
                flows.take(&segment);
            }
        });
        self.book();
        self.settle(self.source.clock().now());
    }

    fn settle(&mut self, now: Nanos) {
        self.flows.settle(now);
        self.book();
    }

    fn book(&mut self) {
        for event in self.flows.take_events() {
            self.summaries.note(&event);
            if let FlowEvent::Finished(exchange) = event {
                let role = self.summaries.role(exchange.endpoint).unwrap_or(Role::Backend);
                let interface = self.source.interface_name(exchange.ifindex);
                let observation = Observation { role, interface, exchange: *exchange };
                self.summaries.observe(&observation);
                (self.observe)(&observation);
            }
        }
    }

    fn finish(mut self) -> ReadReport {
        let patience = u64::try_from(AFTER_END.as_nanos()).unwrap_or(u64::MAX);
        let now = self.source.clock().now().get();
        self.settle(Nanos::new(now.saturating_add(patience)));
        self.flows.flush();
        self.flows.give_up_left();
        self.book();
        let open_requests = self.flows.open_requests().count();
        let (facts, snapshot) = (self.source.facts(), self.snapshot());
        let counters = WindowCounters::between(&Snapshot::default(), &snapshot);
        let stop = self.source.end().and_then(|end| end.as_ref().err());
        let causes = causes(stop, &facts, &counters, open_requests);
        ReadReport {
            schema: SCHEMA,
            format: self.source.format().name(),
            clock: FILE_CLOCK,
            complete: causes.is_empty(),
            causes,
            first_ns: facts.first,
            last_ns: facts.last,
            open_requests,
            counters,
            endpoints: self.summaries.finish(),
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            capture: self.source.counted(),
            flows: self.flows.stats(),
            ..Snapshot::default()
        }
    }
}

fn causes(
    stop: Option<&Stop>,
    facts: &FileFacts,
    counters: &WindowCounters,
    open_requests: usize,
) -> Vec<Cause> {
    let open = (open_requests > 0).then_some(Reason::OpenRequests);
    let flows = reasons(counters).into_iter().chain(open);
    let flows = flows.map(|reason| Cause::of_flows(reason, counters, open_requests));
    stop.map(Cause::of_end).into_iter().chain(Cause::of_file(facts)).chain(flows).collect()
}

#[cfg(test)]
mod tests;
