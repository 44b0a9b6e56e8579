//! Every decoder of bytes that others write, as a function that must neither panic nor hang nor contradict
//! itself, whatever the bytes.
//!
//! `cargo xtask fuzz` drives these functions with libFuzzer; `cargo test -p fuzz` with a short, fixed
//! sequence of damaged seeds. docs/testing.md says how to mend what they find.
#![forbid(unsafe_code)]

mod mutate;
mod target;

pub use mutate::Mutator;
pub use target::{TARGETS, Target, find};
