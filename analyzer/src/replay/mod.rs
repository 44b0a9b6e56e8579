//! Open-loop replay: every request leaves at its planned instant whatever became of the others.
//!
//! The data path is a socket loop of its own over [`protocol`], because no HTTP client exposes framing
//! violations or the kernel's receive stamps. Worker threads each own an epoll instance, a timer and
//! every n-th row of the schedule; the calling thread writes records as requests end.

mod client;
mod config;
mod connection;
mod error;
mod exhausted;
mod ledger;
mod line;
mod progress;
mod receive;
mod record;
mod run;
mod source;
mod summary;
mod target;
mod timers;
mod token;
mod wire;
mod worker;

pub use client::Client;
pub use config::{Connections, ReplayConfig, RequestLimits, RunIdentity, Tuning};
pub use error::ReplayError;
pub use progress::{ProgressSink, Silent};
pub use run::run;
pub use summary::RunSummary;
pub use target::{Target, TargetError};
pub use token::{BearerToken, TokenError};
