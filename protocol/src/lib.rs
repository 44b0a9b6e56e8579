//! HTTP/1.1 message framing, server-sent events, OpenAI stream meaning and one timeline per request, without I/O.
//!
//! The replay client feeds this crate what it reads from a socket; the agent feeds it what it saw on
//! the wire. Same bytes, same verdict: that is what makes the cross-check of the two meaningful.
#![forbid(unsafe_code)]

pub mod cases;
pub mod http1;
mod nanos;
pub mod openai;
pub mod outcome;
pub mod receipt;
pub mod sse;
pub mod timeline;
pub mod trace;

pub use nanos::Nanos;
pub use outcome::{OutcomeUnknown, StreamOutcome};
pub use timeline::{ResponseTimeline, TimelineRecord, Tpot};
pub use trace::{TraceId, TraceParent};
