//! What is drawn of a tick.

use std::collections::BTreeMap;

use crate::metrics::{Families, Sample};

/// One endpoint.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Row {
    /// Its address.
    pub endpoint: String,
    /// Its role.
    pub role: String,
    /// Requests in flight.
    pub in_flight: f64,
    /// Connections; `None` where nobody can tell.
    pub connections: Option<f64>,
    /// Requests that ended since the agent started.
    pub requests: f64,
    /// Of those, the ones that are neither `ok` nor `single_token`.
    pub errors: f64,
    /// Requests that ended per second since the tick before; `None` at the first.
    pub requests_per_s: Option<f64>,
    /// Median time to first token since the agent started, in seconds, estimated from buckets.
    pub ttft_p50_s: Option<f64>,
    /// Its 99th percentile.
    pub ttft_p99_s: Option<f64>,
    /// Median time per output token, in seconds.
    pub tpot_p50_s: Option<f64>,
}

/// One tick.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Model {
    /// Number of the tick.
    pub tick: f64,
    /// When it was taken, in seconds of Unix time.
    pub at_unix_s: f64,
    /// Nothing was lost since the agent started.
    pub complete: bool,
    /// Why not everything was seen.
    pub reasons: Vec<String>,
    /// Records that found no room.
    pub records_failed: f64,
    /// Holes in sequence space.
    pub gaps: f64,
    /// Requests in flight at the busiest endpoint over the mean, by role; absent when idle.
    pub concentration: BTreeMap<String, f64>,
    /// Endpoints, sorted by address.
    pub rows: Vec<Row>,
}

fn samples<'a>(families: &'a Families, name: &str) -> &'a [Sample] {
    families.get(name).map(|family| family.samples.as_slice()).unwrap_or_default()
}

fn sum(families: &Families, name: &str) -> f64 {
    samples(families, name).iter().map(|sample| sample.value).sum()
}

fn label<'a>(sample: &'a Sample, name: &str) -> &'a str {
    sample.labels.get(name).map(String::as_str).unwrap_or_default()
}

/// Quantile of a cumulative histogram by linear interpolation inside its bucket, as Prometheus'
/// `histogram_quantile` does; the open bucket answers its lower bound.
fn quantile(families: &Families, name: &str, endpoint: &str, q: f64) -> Option<f64> {
    let buckets: Vec<(f64, f64)> = samples(families, name)
        .iter()
        .filter(|sample| label(sample, "endpoint") == endpoint && sample.labels.contains_key("le"))
        .filter_map(|sample| {
            let le = label(sample, "le");
            let bound = if le == "+Inf" { f64::INFINITY } else { le.parse().ok()? };
            Some((bound, sample.value))
        })
        .collect();
    let rank = q * buckets.last().filter(|(_, count)| *count > 0.0)?.1;
    let (mut low, mut below) = (0.0, 0.0);
    for (bound, count) in buckets {
        if count >= rank && count > below {
            let share = (rank - below) / (count - below);
            return Some(if bound.is_finite() { low + (bound - low) * share } else { low });
        }
        (low, below) = (bound, count);
    }
    None
}

impl Model {
    /// The model of a tick; rates are against `before`.
    #[must_use]
    pub fn new(families: &Families, before: Option<&Self>) -> Self {
        let mut model = Self {
            tick: sum(families, "goodput_agent_ticks"),
            at_unix_s: sum(families, "goodput_agent_tick_timestamp_seconds"),
            complete: sum(families, "goodput_agent_complete") > 0.0,
            reasons: samples(families, "goodput_agent_incomplete")
                .iter()
                .filter(|sample| sample.value > 0.0)
                .map(|sample| label(sample, "reason").to_owned())
                .collect(),
            records_failed: sum(families, "goodput_agent_records_failed"),
            gaps: sum(families, "goodput_agent_sequence_gaps"),
            concentration: samples(families, "goodput_agent_concentration_ratio")
                .iter()
                .map(|sample| (label(sample, "role").to_owned(), sample.value))
                .collect(),
            rows: Vec::new(),
        };
        let in_flight = samples(families, "goodput_agent_requests_in_flight");
        model.rows = in_flight.iter().map(|sample| model.row(families, sample, before)).collect();
        model
    }

    fn row(&self, families: &Families, sample: &Sample, before: Option<&Self>) -> Row {
        let endpoint = label(sample, "endpoint");
        let own = |name: &str| {
            let all = samples(families, name).iter();
            all.filter(|it| label(it, "endpoint") == endpoint).cloned().collect::<Vec<_>>()
        };
        let outcomes = own("goodput_agent_requests");
        let total = |errors: bool| {
            let good = |it: &&Sample| ["ok", "single_token"].contains(&label(it, "outcome"));
            outcomes.iter().filter(|it| !errors || !good(it)).map(|it| it.value).sum::<f64>()
        };
        let requests = total(false);
        let elapsed = before.map(|it| self.at_unix_s - it.at_unix_s).filter(|it| *it > 0.0);
        let old = before.and_then(|it| it.rows.iter().find(|row| row.endpoint == endpoint));
        let ttft = "goodput_agent_time_to_first_token_seconds";
        Row {
            endpoint: endpoint.to_owned(),
            role: label(sample, "role").to_owned(),
            in_flight: sample.value,
            connections: own("goodput_agent_connections").first().map(|it| it.value),
            requests,
            errors: total(true),
            requests_per_s: old
                .zip(elapsed)
                .map(|(old, elapsed)| (requests - old.requests).max(0.0) / elapsed),
            ttft_p50_s: quantile(families, ttft, endpoint, 0.5),
            ttft_p99_s: quantile(families, ttft, endpoint, 0.99),
            tpot_p50_s: quantile(
                families,
                "goodput_agent_time_per_output_token_seconds",
                endpoint,
                0.5,
            ),
        }
    }
}
