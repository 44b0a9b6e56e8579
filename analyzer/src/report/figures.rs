//! Figures as text.

use crate::stats::Interval;

pub(super) fn fixed(value: f64, digits: usize) -> String {
    format!("{value:.digits$}")
}

pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

pub(super) fn micros(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |us| format!("{us:.0}"))
}

pub(super) fn ends(interval: &Interval, digits: usize) -> String {
    match interval {
        Interval::Interval { low, high, .. } => format!("[{low:.digits$}, {high:.digits$}]"),
        Interval::Degenerate { .. } => "no variance".to_owned(),
        Interval::TooFew { .. } => "too few".to_owned(),
    }
}
