//! `schedule.jsonl`: what is to be sent and when, written before the first send.

use protocol::TraceId;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::lines::Versioned;
use crate::schedule::{Planned, Schedule};

/// One line of the schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    /// [`Versioned::SCHEMA`].
    pub schema: String,
    /// Place in send order, from 0.
    pub index: u64,
    /// Row of `trace.jsonl`, from 0.
    pub row: u64,
    /// Nanoseconds after the start of the window.
    pub planned_offset_ns: u64,
    /// Tokens of the input, where the trace knows them.
    pub input_tokens: Option<u64>,
    /// Tokens asked for.
    pub output_tokens: u64,
    /// Correlation; left out of `schedule_sha256`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<TraceId>,
}

impl Versioned for ScheduleRecord {
    const SCHEMA: &'static str = "goodput.schedule/1";
}

impl From<&Planned> for ScheduleRecord {
    fn from(planned: &Planned) -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            index: planned.index,
            row: u64::try_from(planned.row).unwrap_or(u64::MAX),
            planned_offset_ns: planned.offset_ns,
            input_tokens: planned.input_tokens,
            output_tokens: planned.output_tokens,
            trace_id: Some(planned.trace_id),
        }
    }
}

/// The bytes of `schedule.jsonl`.
///
/// # Errors
/// [`serde_json::Error`] when a line cannot be written, which no schedule causes.
pub fn schedule_lines(schedule: &Schedule) -> Result<Vec<u8>, serde_json::Error> {
    lines(schedule.requests().iter().map(ScheduleRecord::from))
}

/// SHA-256, in hex, of the lines of `schedule.jsonl` without the key `trace_id`: equal for every arm of a
/// repetition.
///
/// # Errors
/// As [`schedule_lines`].
pub fn schedule_sha256(
    records: impl IntoIterator<Item = ScheduleRecord>,
) -> Result<String, serde_json::Error> {
    let records = records.into_iter().map(|record| ScheduleRecord { trace_id: None, ..record });
    Ok(sha256_hex(&lines(records)?))
}

fn lines(records: impl Iterator<Item = ScheduleRecord>) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::new();
    for record in records {
        serde_json::to_writer(&mut bytes, &record)?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// SHA-256 in lower-case hex.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
