//! Times of other tools as nanoseconds. A unit is read where the export writes it and checked where it does not.

use std::path::Path;

use super::error::{ImportError, shape};

const NS_PER_SECOND: f64 = 1e9;
/// Seconds since 1970 until the year 2286: no tool's clock is beyond, but one that counts milliseconds is.
const MOST_SECONDS: f64 = 1e10;
/// Two figures of one export differ by rounding.
const TOLERANCE: f64 = 0.01;
/// Rounding to a hundredth of a millisecond is no other unit, seconds.
const SLACK_S: f64 = 2e-5;

/// Seconds as nanoseconds; `None` when negative, not finite, or too large to be seconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be positive and far below 2^64"
)]
pub(super) fn seconds(value: f64) -> Option<u64> {
    (0.0..MOST_SECONDS).contains(&value).then(|| (value * NS_PER_SECOND).round() as u64)
}

/// The same as an error that names the place.
pub(super) fn seconds_at(path: &Path, at: &str, value: f64) -> Result<u64, ImportError> {
    seconds(value).ok_or_else(|| {
        let problem = format!("{at} is {value}, which is no time in seconds");
        shape(path, problem, "name the export as the tool wrote it, times in seconds")
    })
}

/// `listed` must be what `summary_ms`, which the tool wrote in milliseconds, says of it.
pub(super) fn same(
    path: &Path,
    what: &str,
    listed_s: f64,
    summary_ms: f64,
) -> Result<(), ImportError> {
    let summary_s = summary_ms / 1e3;
    let off = (listed_s - summary_s).abs();
    if off <= TOLERANCE * listed_s.abs().max(summary_s.abs()) + SLACK_S {
        return Ok(());
    }
    let problem = format!(
        "{what}: {listed_s} s by its requests, {summary_ms} ms by its summary: a wrong or mixed unit, or an edited file"
    );
    Err(shape(path, problem, "name the export as the tool wrote it"))
}

/// Nanoseconds in one of a unit that the export names.
pub(super) fn factor(unit: &str) -> Option<f64> {
    match unit {
        "ns" | "nanoseconds" => Some(1.0),
        "us" | "µs" | "microseconds" => Some(1e3),
        "ms" | "milliseconds" => Some(1e6),
        "s" | "sec" | "seconds" => Some(1e9),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_second_is_none() {
        assert_eq!(seconds(1.5), Some(1_500_000_000));
        assert_eq!(seconds(0.0), Some(0));
        for bad in [-0.1, f64::NAN, f64::INFINITY, 1.7e12] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_thousand_times_too_much_is_another_unit() {
        let check = |listed, summary| same(Path::new("x"), "mean TTFT", listed, summary);
        assert!(check(0.1, 100.0).is_ok());
        assert!(check(0.1004, 100.0).is_ok());
        assert!(check(100.0, 100.0).unwrap_err().to_string().contains("unit"));
        assert!(check(0.1, 0.1).is_err());
        assert!(check(0.1, 103.0).is_err());
        assert!(check(f64::NAN, 100.0).is_err());
    }
}
