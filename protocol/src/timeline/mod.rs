//! One timeline per response: bytes and stamps in, instants and evidence out.
//!
//! Every stamp is the caller's. All that happens within one `feed` gets the stamp of that `feed`, so
//! feed each segment or read by itself.

mod payloads;
mod record;
mod response;
mod tpot;

pub use record::{
    BadPayload, BadPayloadKind, BodyFormat, Finish, HeadInfo, InbandError, TimelineRecord,
    TokensFrom,
};
pub use response::{FeedReport, Limits, ResponseTimeline};
pub use tpot::{Tpot, TpotValue};
