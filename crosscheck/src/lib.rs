//! The figures of a run directory, computed a second time by other means and compared with what the analyzer
//! wrote.
//!
//! Independent on purpose: no crate of this workspace is a dependency, nothing is read but instants, status, token
//! counts and the flags of how a response ended, and the algebra differs (integers and products where the analyzer
//! divides, sums over pairs for variances, own special functions for quantiles). A stored class or latency is a claim
//! here, never a source.
#![forbid(unsafe_code)]

pub mod compare;
pub mod disagreement;
pub mod pair;
pub mod request;
pub mod rundir;
pub mod rung;
pub mod special;

pub use compare::{Report, check};
pub use disagreement::Disagreement;
pub use rundir::{ReadError, RunDir};
