//! Phase 5: validity, stability and integrity, as rules. Nothing noisy or invalid can be published.
//!
//! Validity comes first: [`gates`] is applied to every repetition before any statistic is computed.

mod caveats;
mod code;
pub(crate) mod copies;
mod decision;
mod delivery;
pub mod gates;
mod preconditions;
mod recomputation;
pub(crate) mod recount;
mod replicates;
mod stability;
mod verdict;

pub use code::{Code, Effect, Finding};
pub use decision::{DecisionProof, Proof};
pub use delivery::{DeliveryProof, KernelState};
pub use recomputation::{CrosscheckProgram, Recomputation, SecondComputation};
pub use replicates::Replicates;
pub use verdict::{EquivalenceClaim, ImportedVerdict, Verdict, VerdictFile, WinClaim, verify};

#[cfg(test)]
mod tests;
