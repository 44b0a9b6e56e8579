//! `goodput-agent read` as its users start it, on captures that the tests write and on captures that
//! tcpdump makes, compared with tshark.

#![expect(
    clippy::unwrap_used,
    reason = "helpers outside test functions fail their test by panicking"
)]

mod command_line;
mod conversation;
mod program;
mod same_in_both_formats;
mod tcpdump;
mod tools;
mod tshark;
