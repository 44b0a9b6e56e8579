//! The replay against real sockets: every scripted case, the classes that are the client's alone, the
//! instants it reports against those of the server's own writes, and the program around it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

mod cases;
mod classes;
mod harness;
mod instants;
mod keep_alive;
mod program;
mod server;
