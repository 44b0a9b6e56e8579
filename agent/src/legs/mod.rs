//! Legs of one request: what its client leg and its backend legs say together. Paired by the correlation
//! header, never by guess; pure, so that rows of a window, of a file and of the running agent give the same.

mod pair;
mod report;
mod row;
mod split;
mod tally;

pub use pair::{Pair, Pairing, Unmatched, UnmatchedReason, pair};
pub use report::{DELIVERY_SCHEMA, Delivery, LEGS_SCHEMA, LegsRow, Scope, delivery, rows};
pub use row::LegRow;
pub use split::{Cause, Split};
pub use tally::{LegCounts, Tally};

#[cfg(test)]
mod tests;
