//! `goodput run`: the phases in order, from one campaign file to one verdict.

mod baseline;
mod cell;
mod derive;
mod error;
mod finish;
mod manifest;
mod order;
mod phases;
mod prefix;
mod prepare;
mod reporter;

pub use derive::{DeriveOptions, Derived, derive_slo};
pub use error::RunError;
pub use finish::{Judged, analyze_dir};
pub use phases::{check_health, probe_only, run};
pub use prepare::{Existing, RunOptions};
pub use reporter::{Reporter, SilentReporter, Step};

#[cfg(test)]
mod tests;
