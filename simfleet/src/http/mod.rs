//! The fleet's own HTTP/1.1 on plain sockets: it must be able to send what no library would.

mod read;
mod write;

pub(crate) use read::{Connection, Head, ReadError, Request};
pub(crate) use write::{chunk, close_delimited, fixed, stream_head};
