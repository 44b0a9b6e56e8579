//! Run directories and JSON Lines files.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

/// Every line of a JSON Lines file; a torn line is an error.
///
/// # Errors
/// When the file cannot be read, or a line is no JSON.
pub fn read(path: &Path) -> anyhow::Result<Vec<Value>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    parse(&text).with_context(|| path.display().to_string())
}

/// Every line of `text`.
///
/// # Errors
/// When a line is no JSON.
pub fn parse(text: &str) -> anyhow::Result<Vec<Value>> {
    let line = |(index, line): (usize, &str)| {
        serde_json::from_str(line).with_context(|| format!("line {}", index + 1))
    };
    text.lines().enumerate().map(line).collect()
}

/// A JSON file.
///
/// # Errors
/// When it cannot be read or is no JSON.
pub fn object(path: &Path) -> anyhow::Result<Value> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

/// The whole number under `key`, if it is there.
#[must_use]
pub fn number(row: &Value, key: &str) -> Option<i64> {
    row.get(key).and_then(Value::as_i64)
}

/// The text under `key`; empty when it is not there.
#[must_use]
pub fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row.get(key).and_then(Value::as_str).unwrap_or_default()
}
