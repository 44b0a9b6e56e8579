//! goodput: replays a real trace through a gateway and turns it into goodput@SLO and a verdict.
#![deny(unsafe_code)]

pub mod clock;
pub mod outcome;
pub mod prompt;
pub mod records;
pub mod replay;
pub mod schedule;
pub mod stats;
pub mod trace;
