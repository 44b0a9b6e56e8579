//! The progress bar of a replay: on stderr, hidden when that is no terminal.

use analyzer::records::RequestRecord;
use analyzer::replay::ProgressSink;
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};

const NS_PER_US: i64 = 1_000;
const HISTOGRAM_DIGITS: u8 = 2;
/// An hour: what is slower counts as that. Fixed, since a histogram that grows ignores values beyond its
/// present range where it saturates.
const MOST_US: u64 = 3_600_000_000;

/// Requests ended, misses, and TTFT so far. The histogram is for the eye only; results come from the
/// records.
pub(crate) struct ReplayBar {
    bar: ProgressBar,
    ttft_us: Option<Histogram<u64>>,
    missed: u64,
}

impl ReplayBar {
    /// A bar over `attempted` requests.
    pub(crate) fn new(label: &str, attempted: u64) -> Self {
        let bar = ProgressBar::new(attempted);
        let template = "{prefix} {bar:30} {pos}/{len} {elapsed} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(label.to_owned());
        Self { bar, ttft_us: histogram(), missed: 0 }
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Where it stands, as a line of a log.
    pub(crate) fn line(&self) -> String {
        let (ended, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
        format!("{ended} of {all} requests ended, {}", self.message())
    }

    fn message(&self) -> String {
        let (p50, p99) =
            (quantile(self.ttft_us.as_ref(), 0.5), quantile(self.ttft_us.as_ref(), 0.99));
        format!("TTFT p50 {p50}, p99 {p99}, not delivered {}", self.missed)
    }
}

fn histogram() -> Option<Histogram<u64>> {
    Histogram::new_with_bounds(1, MOST_US, HISTOGRAM_DIGITS).ok()
}

fn quantile(ttft_us: Option<&Histogram<u64>>, q: f64) -> String {
    let ttft = ttft_us.filter(|ttft| !ttft.is_empty());
    ttft.map_or_else(|| "-".to_owned(), |ttft| ms(ttft.value_at_quantile(q)))
}

fn ms(us: u64) -> String {
    format!("{}.{} ms", us / 1_000, us % 1_000 / 100)
}

impl ProgressSink for ReplayBar {
    fn ended(&mut self, record: &RequestRecord) {
        let ttft_us = record.ttft_ns.and_then(|ns| u64::try_from(ns / NS_PER_US).ok());
        if let (Some(histogram), Some(us)) = (&mut self.ttft_us, ttft_us) {
            histogram.saturating_record(us);
        }
        self.missed += u64::from(!record.class.is_delivered());
        self.bar.inc(1);
        if !self.bar.is_hidden() {
            self.bar.set_message(self.message());
        }
    }

    fn tick(&mut self) {
        self.bar.tick();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_live_ttft_is_what_was_recorded() {
        let mut ttft = histogram().unwrap();
        assert_eq!(quantile(Some(&ttft), 0.5), "-");
        ttft.saturating_record(90_000);
        assert_eq!(quantile(Some(&ttft), 0.5), "90.1 ms");
        ttft.saturating_record(u64::MAX);
        assert!(quantile(Some(&ttft), 1.0).starts_with("36"));
    }
}
