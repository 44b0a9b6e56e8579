//! Reading a trace: format, rows, order, selection.

use std::path::Path;

use serde_json::Value;

use crate::input::read_regular;

use super::error::{Flaw, TraceError};
use super::{MOONCAKE_BLOCK_TOKENS, Row, Trace, TraceFormat, mooncake, prompts};

/// No model takes or gives more tokens than this; a larger number is a mistake of units.
pub(super) const MAX_TOKENS: u64 = 100_000_000;
/// A century, in milliseconds: keeps nanoseconds within 64 bits.
const MAX_TIMESTAMP_MS: f64 = 3.2e12;
const NS_PER_MS: f64 = 1e6;

/// What to take from a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// `None` recognises the format by the keys of the first row.
    pub format: Option<TraceFormat>,
    /// Divides input, output and block lengths alike; a divisor of 512.
    pub length_divisor: u64,
    /// Rows left out at the start, in order of time.
    pub skip: usize,
    /// Rows kept after those; `None` keeps all.
    pub limit: Option<usize>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self { format: None, length_divisor: 1, skip: 0, limit: None }
    }
}

/// Reads, checks and orders a trace file.
///
/// # Errors
/// Every [`TraceError`].
pub fn load(path: &Path, options: &LoadOptions) -> Result<Trace, TraceError> {
    let bytes =
        read_regular(path).map_err(|cause| TraceError::Io { path: path.to_owned(), cause })?;
    parse(&bytes, path, options)
}

/// Checks and orders the bytes of a trace; `path` is named in errors.
///
/// # Errors
/// Every [`TraceError`] but [`TraceError::Io`].
pub fn parse(bytes: &[u8], path: &Path, options: &LoadOptions) -> Result<Trace, TraceError> {
    let divisor = options.length_divisor;
    if divisor == 0 || !MOONCAKE_BLOCK_TOKENS.is_multiple_of(divisor) {
        return Err(TraceError::Divisor(divisor));
    }
    let (format, mut rows) = parse_rows(bytes, path, options)?;
    if format == TraceFormat::Prompt && divisor != 1 {
        return Err(TraceError::DivisorOnText);
    }
    if rows.is_empty() {
        return Err(TraceError::Empty { path: path.to_owned(), why: "the file is empty" });
    }
    // Stable: ties keep the order of the file.
    rows.sort_by_key(|row| row.arrival_ns);
    let limit = options.limit.unwrap_or(usize::MAX);
    let rows: Vec<Row> = rows.into_iter().skip(options.skip).take(limit).collect();
    if rows.is_empty() {
        return Err(TraceError::Empty { path: path.to_owned(), why: "the selection left none" });
    }
    Ok(Trace { format, rows })
}

fn parse_rows(
    bytes: &[u8],
    path: &Path,
    options: &LoadOptions,
) -> Result<(TraceFormat, Vec<Row>), TraceError> {
    let mut format = options.format;
    let mut rows = Vec::new();
    for (index, raw) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let line = index + 1;
        if raw.trim_ascii().is_empty() {
            continue;
        }
        let row = parse_row(raw, line, &mut format, options.length_divisor)
            .map_err(|flaw| TraceError::Row { path: path.to_owned(), line, flaw })?;
        rows.push(row);
    }
    Ok((format.unwrap_or(TraceFormat::Mooncake), rows))
}

fn parse_row(
    raw: &[u8],
    line: usize,
    format: &mut Option<TraceFormat>,
    divisor: u64,
) -> Result<Row, Flaw> {
    let text = std::str::from_utf8(raw).map_err(|_| Flaw::Encoding)?;
    let known = match *format {
        Some(known) => known,
        None => *format.insert(recognise(text)?),
    };
    match known {
        TraceFormat::Mooncake => mooncake::parse(text, line, divisor),
        TraceFormat::Prompt => prompts::parse(text, line),
    }
}

fn recognise(text: &str) -> Result<TraceFormat, Flaw> {
    let row: Value = serde_json::from_str(text)?;
    let has = |keys: &[&str]| keys.iter().any(|key| row.get(key).is_some());
    match (
        has(&["hash_ids", "input_length", "timestamp"]),
        has(&["messages", "prompt", "timestamp_ms"]),
    ) {
        (true, false) => Ok(TraceFormat::Mooncake),
        (false, true) => Ok(TraceFormat::Prompt),
        _ => Err(Flaw::UnknownFormat),
    }
}

/// Milliseconds as written to nanoseconds, rounded.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked first: 0 to 3.2e18"
)]
pub(super) fn arrival_ns(key: &'static str, ms: f64) -> Result<u64, Flaw> {
    if ms.is_finite() && (0.0..=MAX_TIMESTAMP_MS).contains(&ms) {
        Ok((ms * NS_PER_MS).round() as u64)
    } else {
        Err(Flaw::Timestamp { key, value: ms })
    }
}
