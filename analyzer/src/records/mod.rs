//! Wire types of the run directory that the replay writes, with their writers and readers.
//!
//! `docs/formats.md` is the contract. Keys are written in the order of the fields.

mod contradiction;
mod lines;
mod pace;
mod request;
mod run;
mod schedule;

pub use lines::{LineWriter, Lines, RecordError, Versioned, check_lines, read_lines};
pub use pace::{Pace, PaceFigures};
pub use request::{FramingVerdict, RequestRecord, StampSource, TokensSource, TpotUndefined};
pub use run::{AgentRecord, RunRecord};
pub use schedule::{ScheduleRecord, schedule_lines, schedule_sha256, sha256_hex};
