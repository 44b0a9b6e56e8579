//! Schedules: when each row is sent, fixed, seeded, hashed and stored before the first send.

mod arrivals;
mod build;
mod error;
#[cfg(test)]
mod tests;

pub use arrivals::{Arrivals, burstiness};
pub(crate) use build::length_ns;
pub use build::{Plan, build};
pub use error::ScheduleError;

use protocol::TraceId;

/// One planned request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Place in send order, from 0.
    pub index: u64,
    /// Row of the materialised trace, from 0.
    pub row: usize,
    /// Nanoseconds after the start of the window.
    pub offset_ns: u64,
    /// Tokens of the input, where the trace knows them.
    pub input_tokens: Option<u64>,
    /// Tokens asked for.
    pub output_tokens: u64,
    /// Correlation.
    pub trace_id: TraceId,
}

/// A fixed schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    requests: Vec<Planned>,
    rate_rps: f64,
    length_ns: u64,
    burstiness: Option<f64>,
}

impl Schedule {
    /// Its requests, in send order.
    #[must_use]
    pub fn requests(&self) -> &[Planned] {
        &self.requests
    }

    /// Requests per second that are offered.
    #[must_use]
    pub fn rate_rps(&self) -> f64 {
        self.rate_rps
    }

    /// Requests divided by rate: the wall time that goodput is divided by.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        self.length_ns
    }

    /// Squared coefficient of variation of the gaps: 0 constant, 1 Poisson, above 1 bursty.
    /// `None` below two gaps.
    #[must_use]
    pub fn burstiness(&self) -> Option<f64> {
        self.burstiness
    }
}
