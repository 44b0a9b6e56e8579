//! What can be wrong with a schedule's parameters.

use thiserror::Error;

/// Parameters that give no schedule. Every message names the mend.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ScheduleError {
    /// Zero, negative, not finite or beyond what one host can offer.
    #[error("rate is {0}: give requests per second above 0 and at most 1000000")]
    Rate(f64),
    /// More requests than rows. Rows are never repeated: their prefixes would be cached.
    #[error(
        "{wanted} requests from a trace of {rows} rows: ask for at most {rows}, or give a longer trace"
    )]
    TooFewRows {
        /// Requests asked for.
        wanted: usize,
        /// Rows there are.
        rows: usize,
    },
    /// No request at all.
    #[error("0 requests: ask for at least 1")]
    NoRequests,
    /// The rows chosen all carry one timestamp: stretching no time gives no rate.
    #[error(
        "the {0} rows chosen share one timestamp, so trace time cannot be stretched to a rate: \
         use poisson or constant arrivals, or more rows"
    )]
    NoSpan(usize),
    /// Longer than 292 years.
    #[error("the schedule would last {0} s: raise the rate or ask for fewer requests")]
    TooLong(f64),
}
