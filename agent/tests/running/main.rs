//! The program while it runs: what it tells, keeps to itself, holds and follows.

#![expect(
    clippy::unwrap_used,
    reason = "helpers outside test functions fail their test by panicking"
)]

#[path = "../common/mod.rs"]
mod common;
mod doctor;
mod live;
#[path = "../common/namespace.rs"]
mod namespace;
mod privileges;
mod reload;
mod secrecy;
mod terminal;
