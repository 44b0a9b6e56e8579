//! What only an agent on the gateway's host can know of LoxiLB: read, never changed, each fact with the
//! instant at which it was read, or with why it is unknown.

mod collect;
mod fact;
mod pins;
mod process;
mod sockets;

pub use collect::{Collector, Evidence, InterfacePrograms, ProcessEvidence, Subject};
pub use fact::{Fact, Unknown};
pub use pins::PinFolder;
pub use process::{ENVIRONMENT, Environment, Process};
pub use sockets::{Listener, Owner};

/// Name and version of the evidence's form (`docs/formats.md`).
pub const SCHEMA: &str = "goodput.evidence/1";

/// Name of LoxiLB's process when nothing else is said.
pub const DEFAULT_PROCESS: &str = "loxilb";

#[cfg(test)]
mod tests;
