//! Types shared by the kernel programs and user space.
//!
//! Everything that crosses the border (ring records, map keys, map values) is `repr(C)` without
//! padding that carries no name, and its size and field offsets are asserted at compile time, so
//! that user space can parse the bytes at fixed offsets without any unsafe code.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod counters;
pub mod endpoint;
pub mod record;
pub mod tracepoint;
