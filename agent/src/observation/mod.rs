//! What is exported of one request.

mod outcome;
mod receipt;
mod row;

pub use outcome::Outcome;
pub use receipt::ReceiptFrom;
pub use row::{FILE_CLOCK, KernelRow, SCHEMA};

use crate::endpoint::Role;
use crate::flow::FinishedExchange;

/// One request as the kernel saw it.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Role of its endpoint.
    pub role: Role,
    /// Name of the interface that its connection was first seen on.
    pub interface: String,
    /// Everything known about it.
    pub exchange: FinishedExchange,
}

impl Observation {
    /// Its class.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        Outcome::of(&self.exchange)
    }
}
