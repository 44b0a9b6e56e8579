//! How a caller follows a run.

use crate::records::RequestRecord;

/// Told of every request that ends, in the order of the lines of `requests.jsonl`.
pub trait ProgressSink {
    /// `record` was just written.
    fn ended(&mut self, record: &RequestRecord);
    /// Called several times a second while requests are in flight.
    fn tick(&mut self) {}
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl ProgressSink for Silent {
    fn ended(&mut self, _: &RequestRecord) {}
}
