//! Windows: what was seen between two instants, and whether all of it was.

mod book;
mod counters;
mod lease;
mod prefixes;
mod reason;

pub use book::{Closing, MAX_WINDOWS, Window, WindowError, Windows};
pub use counters::{Snapshot, WindowCounters};
pub use lease::{Lease, LeaseError};
pub use reason::{Reason, reasons};

#[cfg(test)]
mod tests;
