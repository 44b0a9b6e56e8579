//! End-to-end tests: real sockets, real namespaces, the real kernel programs.
//!
//! This library is their harness; docs/testing.md says how to run them. Everything a test starts is
//! held by a guard that ends it, however the test ends.
#![forbid(unsafe_code)]

pub mod agent;
pub mod binaries;
pub mod campaign;
pub mod cross_check;
pub mod fleet;
pub mod http;
pub mod jsonl;
pub mod kernel;
pub mod namespace;
pub mod numbers;
pub mod process;
pub mod refusal;
pub mod replay;
pub mod trace;
