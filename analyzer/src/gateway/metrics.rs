//! Prometheus' text format, as much of it as counters need.

use std::collections::BTreeMap;

use crate::rundir::Scrape;

/// Series and values of a page. A page without one series is no evidence: some builds answer 200 with a
/// JSON string while metrics are off.
#[must_use]
pub fn parse(text: &str) -> Scrape {
    let lines = text.lines().map(str::trim);
    let series: BTreeMap<String, f64> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter_map(sample)
        .collect();
    if series.is_empty() {
        let start: String = text.chars().take(80).collect();
        return Scrape::Unavailable { reason: format!("no series in the answer: {start:?}") };
    }
    Scrape::Answered { series }
}

/// `name{labels} value [timestamp]`; the value must be finite.
fn sample(line: &str) -> Option<(String, f64)> {
    let end = match line.rfind('}') {
        Some(brace) => brace + 1,
        None => line.find(char::is_whitespace)?,
    };
    let (name, rest) = line.split_at(end);
    let first = name.chars().next()?;
    let value: f64 = rest.split_whitespace().next()?.parse().ok()?;
    let named = first.is_ascii_alphabetic() || first == '_' || first == ':';
    (named && value.is_finite()).then(|| (name.to_owned(), value))
}
