//! Live capture on `lo`: the real kernel programs, real sockets. Needs root.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod coexistence;
mod connections;
mod detach;
mod each_once;
mod frames;
mod http;
mod inject;
mod kernel_log;
mod loss;
#[path = "../common/namespace.rs"]
mod namespace;
mod namespaces;
mod neighbour;
mod privilege;
mod recorder;
mod rig;
mod stream;
mod support;
mod views;
