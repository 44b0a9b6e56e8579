//! The figures, for machines and for people (docs/testing.md).

use serde::Serialize;
use serde_json::Value;

use crate::host::Host;
use crate::measure::completeness::Completeness;

/// Name and version of the form.
const SCHEMA: &str = "goodput.bench-agent/1";

/// A load average above which figures of cost are not the agent's alone.
const BUSY: f64 = 0.5;

/// A figure with its spread over repetitions.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) repeats: usize,
}

impl Figure {
    /// Of one value for each repetition; `None` of none.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let upper = *values.get(values.len() / 2)?;
        let lower = *values.get((values.len() - 1) / 2)?;
        Some(Self { median: f64::midpoint(lower, upper), min, max, repeats: values.len() })
    }
}

/// A bound from the design and whether it is kept.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    pub(crate) bound: f64,
    pub(crate) met: bool,
}

/// Everything measured; keys are written in this order.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    schema: &'static str,
    pub(crate) host: Host,
    pub(crate) quick: bool,
    pub(crate) events_offered: u64,
    pub(crate) events_lost: u64,
    pub(crate) completeness: Vec<Completeness>,
    /// Medians; `figures` has their spread. `null`: not measured, `notes` says why.
    pub(crate) ns_per_matched_packet: Option<f64>,
    pub(crate) ns_per_further_kib: Option<f64>,
    pub(crate) ns_per_other_packet: Option<f64>,
    pub(crate) ns_stats_floor: Option<f64>,
    pub(crate) ns_per_matched_packet_net: Option<f64>,
    pub(crate) ns_per_other_packet_net: Option<f64>,
    pub(crate) agent_cpu_ms_per_10000_events: Option<f64>,
    pub(crate) cpu_ratio_vs_tcpdump: Option<f64>,
    pub(crate) rss_anon_mib_at_10k_connections: Option<f64>,
    pub(crate) client_ttft_p50_ratio_on_off: Option<f64>,
    pub(crate) client_ttft_p99_ratio_on_off: Option<f64>,
    pub(crate) host_cpu_points_on_minus_idle: Option<f64>,
    pub(crate) figures: std::collections::BTreeMap<&'static str, Figure>,
    pub(crate) details: Value,
    pub(crate) targets: Vec<Target>,
    pub(crate) notes: Vec<String>,
}

impl Report {
    pub(crate) fn new(host: Host, quick: bool) -> Self {
        Self {
            schema: SCHEMA,
            host,
            quick,
            events_offered: 0,
            events_lost: 0,
            completeness: Vec::new(),
            ns_per_matched_packet: None,
            ns_per_further_kib: None,
            ns_per_other_packet: None,
            ns_stats_floor: None,
            ns_per_matched_packet_net: None,
            ns_per_other_packet_net: None,
            agent_cpu_ms_per_10000_events: None,
            cpu_ratio_vs_tcpdump: None,
            rss_anon_mib_at_10k_connections: None,
            client_ttft_p50_ratio_on_off: None,
            client_ttft_p99_ratio_on_off: None,
            host_cpu_points_on_minus_idle: None,
            figures: std::collections::BTreeMap::new(),
            details: Value::Object(serde_json::Map::new()),
            targets: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Keeps a figure; answers its median.
    pub(crate) fn figure(&mut self, name: &'static str, values: Vec<f64>) -> Option<f64> {
        let figure = Figure::of(values)?;
        let median = figure.median;
        self.figures.insert(name, figure);
        Some(median)
    }

    /// Holds what was measured against the design's bounds (strictly below).
    pub(crate) fn judge(&mut self) {
        if self.host.load_before > BUSY {
            let note = "the host was busy before: figures of cost hold other work, too";
            self.notes.push(note.to_owned());
        }
        let bounds = [
            ("ns_per_matched_packet", self.ns_per_matched_packet, 700.0),
            ("ns_per_further_kib", self.ns_per_further_kib, 200.0),
            ("ns_per_other_packet", self.ns_per_other_packet, 100.0),
            ("cpu_ratio_vs_tcpdump", self.cpu_ratio_vs_tcpdump, 1.0),
            ("rss_anon_mib_at_10k_connections", self.rss_anon_mib_at_10k_connections, 48.0),
        ];
        self.targets = bounds
            .iter()
            .filter_map(|(name, value, bound)| {
                let value = (*value)?;
                Some(Target { name, value, bound: *bound, met: value < *bound })
            })
            .collect();
    }

    /// Nothing was lost, and every observation was as the client counted.
    pub(crate) fn complete(&self) -> bool {
        self.events_lost == 0 && self.completeness.iter().all(|part| part.passed)
    }

    /// The table for people.
    pub(crate) fn print(&self) {
        let Host { kernel, cpu, cpus, memory_mib, load_before } = &self.host;
        println!("Linux {kernel}, {cpus} x {cpu}, {memory_mib} MiB, load before {load_before}");
        for part in &self.completeness {
            part.print();
        }
        for (name, figure) in &self.figures {
            let Figure { median, min, max, repeats } = figure;
            println!("{name:<44} {median:>10.2}   {min:.2} to {max:.2} in {repeats}");
        }
        for Target { name, value, bound, met } in &self.targets {
            let verdict = if *met { "met" } else { "MISSED" };
            println!("target {name:<37} {value:>10.2} < {bound}: {verdict}");
        }
        self.notes.iter().for_each(|note| println!("note: {note}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_median_with_its_spread() {
        let figure = Figure::of(vec![3.0, 1.0, 2.0, 10.0]).unwrap();
        assert_eq!((figure.median, figure.min, figure.max, figure.repeats), (2.5, 1.0, 10.0, 4));
        assert!(Figure::of(Vec::new()).is_none());
    }

    #[test]
    fn a_bound_is_missed_at_its_value() {
        let (kernel, cpu) = (String::new(), String::new());
        let host = Host { kernel, cpu, cpus: 1, memory_mib: 1, load_before: 0.0 };
        let mut report = Report::new(host, true);
        report.ns_per_matched_packet = Some(700.0);
        report.ns_per_other_packet = Some(99.9);
        report.judge();
        let met: Vec<_> = report.targets.iter().map(|it| it.met).collect();
        assert_eq!(met, [false, true]);
    }
}
