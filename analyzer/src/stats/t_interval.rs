//! The t interval of a mean over repetitions: the published one.

use super::Interval;
use super::distribution::{t_quantile, upper_tail};
use super::moments::moments;

/// mean +/- t(1-alpha/2, G-1) sd / sqrt(G).
///
/// Two values are needed. Identical values give `Degenerate`: an interval of width zero would claim
/// that nothing is uncertain, where a binomial interval over the pooled requests still has width.
#[must_use]
pub fn t_interval(values: &[f64], confidence: f64) -> Interval {
    let too_few = Interval::TooFew { have: values.len(), need: 2 };
    let Some(summary) = moments(values) else { return too_few };
    let Some(error) = summary.standard_error() else { return too_few };
    if error == 0.0 {
        return Interval::Degenerate { reason: "no variance between repetitions".to_owned() };
    }
    let Some(t) = t_quantile(upper_tail(confidence), (summary.n - 1) as f64) else {
        return Interval::Degenerate { reason: format!("no t quantile at {confidence}") };
    };
    Interval::Interval { low: summary.mean - t * error, high: summary.mean + t * error, confidence }
}
