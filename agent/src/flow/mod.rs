//! From segments to requests: per connection and direction, bytes are put in order by sequence
//! number, read once, and forgotten. `docs/decisions/0003-flow-reassembly.md` gives the rules.

mod connection;
mod event;
mod exchange;
mod handshake;
mod history;
mod http;
mod limits;
mod parked;
mod stats;
mod stream;
mod table;
mod tail;
mod view;

pub use event::{ConnectionId, FinishedExchange, FlowEvent, Opaque, Side};
pub use limits::FlowLimits;
pub use stats::FlowStats;
pub use table::FlowTable;

#[cfg(test)]
mod tests;
