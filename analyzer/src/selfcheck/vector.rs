//! Figures out of the embedded reference vectors. What is absent is no number and fails its check.

use std::sync::OnceLock;

use serde_json::Value;

fn file() -> &'static Value {
    static FILE: OnceLock<Value> = OnceLock::new();
    FILE.get_or_init(|| {
        serde_json::from_str(include_str!("../../tests/data/stat-vectors.json")).unwrap_or_default()
    })
}

/// The vector of this id; null when there is none.
pub(super) fn vector(id: &str) -> &'static Value {
    let all = file()["vectors"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().find(|vector| vector["id"] == id).unwrap_or(&Value::Null)
}

/// A number.
pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// A count.
pub(super) fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(u64::MAX)
}

/// A list.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Numbers.
pub(super) fn numbers(value: &Value) -> Vec<f64> {
    list(value).iter().map(number).collect()
}
