//! HTTP/1.1 message framing (RFC 9112), incremental, in both directions.
//!
//! No HTTP client exposes framing violations, and counting them is what this crate exists for.
//! State is bounded: one head or trailer section of at most 64 KiB, and a few integers.

mod body;
mod chunked;
mod fields;
mod framing;
mod length;
mod number;
mod request;
mod response;
mod rule;
mod section;

pub use chunked::MAX_CHUNK_LINE;
pub use fields::Fields;
pub use framing::{Close, Framing, Tolerated, UnknownCause};
pub use length::{BodyKind, Method};
pub use request::{RequestDecoder, RequestEvent, RequestHead};
pub use response::{ResponseDecoder, ResponseEvent, ResponseHead};
pub use rule::{Direction, RULES, Row, Rule, Treatment};
pub use section::MAX_SECTION;

pub(crate) use number::count;
