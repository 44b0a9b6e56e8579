//! Capture files: pcap and pcapng, read from front to back in bounded memory.
//!
//! `docs/agent.md` says what is read.

mod classic;
mod decode;
mod error;
mod input;
mod link;
mod ng;
mod order;
mod packet;
mod reader;
mod source;
mod views;
pub mod write;

pub use decode::{Decoded, decode_all};
pub use error::{OpenError, Stop};
pub use link::{Hop, LinkType};
pub use order::Order;
pub use packet::{Other, Packet, parse};
pub use reader::{Format, Frame, Reader};
pub use source::{FileClock, FileFacts, FileSource};

#[cfg(test)]
mod tests;
