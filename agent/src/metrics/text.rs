//! A tick as OpenMetrics text.

use std::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};

use super::catalog::*;
use super::{EndpointBook, Histogram, Tick, concentration, count_f64};
use crate::capture::ClassCounters;
use crate::discovery::DiscoveryCounts;
use crate::endpoint::Role;
use crate::inflight::ConnectionSource;
use crate::window::Reason;

/// The media type of OpenMetrics text (OpenMetrics 1.0, section "Protocol Negotiation").
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the process knows beside the worker.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// When it started, in seconds of Unix time.
    pub started_unix_s: f64,
    /// When the tick was taken, in seconds of Unix time.
    pub tick_unix_s: f64,
    /// Size of the ring buffer.
    pub ring_bytes: u64,
    /// Reloads that were applied.
    pub reloads_applied: u64,
    /// Reloads that were refused.
    pub reloads_refused: u64,
    /// Readings of LoxiLB's rules, where endpoints are discovered.
    pub discovery: Option<DiscoveryCounts>,
    /// API connections refused.
    pub api_refused: u64,
    /// Name of the source.
    pub source: &'static str,
    /// Release of the kernel.
    pub kernel: String,
}

/// The text of a tick.
///
/// # Errors
/// When the text can't be written, which a string never refuses.
pub fn openmetrics(tick: Tick, process: Process) -> Result<String, Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Exposition { tick, process }));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Exposition {
    tick: Tick,
    process: Process,
}

type Labels = Vec<(&'static str, String)>;
/// One series: the values of its family's labels, in order, and its own.
type Series<T, const N: usize> = ([String; N], T);

fn labels<const N: usize>(family: &Family, values: [String; N]) -> Labels {
    family.labels.iter().copied().zip(values).collect()
}

const fn metric_type(kind: Kind) -> MetricType {
    match kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
        Kind::Info => MetricType::Info,
    }
}

fn write<T, const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    family: &Family,
    series: impl IntoIterator<Item = Series<T, N>>,
    value: impl Fn(&mut MetricEncoder<'_>, &T) -> Result<(), Error>,
) -> Result<(), Error> {
    let unit = (!family.unit.is_empty()).then(|| Unit::Other(family.unit.to_owned()));
    let kind = metric_type(family.kind);
    let mut metric = encoder.encode_descriptor(family.stem, family.help, unit.as_ref(), kind)?;
    for (values, one) in series {
        if N == 0 {
            value(&mut metric, &one)?;
        } else {
            let labels = labels(family, values);
            value(&mut metric.encode_family(&labels)?, &one)?;
        }
    }
    Ok(())
}

fn counter(metric: &mut MetricEncoder<'_>, value: &u64) -> Result<(), Error> {
    metric.encode_counter(value, None::<&Exemplar<NoLabelSet, f64>>)
}

fn gauge(metric: &mut MetricEncoder<'_>, value: &f64) -> Result<(), Error> {
    metric.encode_gauge(value)
}

fn whole(metric: &mut MetricEncoder<'_>, value: &u64) -> Result<(), Error> {
    metric.encode_gauge(&i64::try_from(*value).unwrap_or(i64::MAX))
}

fn histogram(metric: &mut MetricEncoder<'_>, value: &Histogram) -> Result<(), Error> {
    let (sum, count) = (value.sum_seconds(), value.count());
    metric.encode_histogram::<NoLabelSet>(sum, count, &value.buckets(), None)
}

type Encoder<'a> = DescriptorEncoder<'a>;

impl Exposition {
    fn in_flight(&self, encoder: &mut Encoder<'_>) -> Result<(), Error> {
        let gauges = &self.tick.gauges;
        let at = |row: &crate::inflight::GaugeRow| [row.endpoint.to_string(), row.role.to_string()];
        let exact = |source| u64::from(source == ConnectionSource::Tracepoint);
        let requests = gauges.iter().map(|row| (at(row), row.requests));
        write(encoder, &REQUESTS_IN_FLIGHT, requests, whole)?;
        let connections = gauges.iter().filter_map(|row| Some((at(row), row.connections?)));
        write(encoder, &CONNECTIONS, connections, whole)?;
        let sources = gauges.iter().map(|row| (at(row), exact(row.source)));
        write(encoder, &CONNECTIONS_EXACT, sources, whole)?;
        let drift = gauges.iter().filter_map(|row| Some((at(row), row.agreement.drift?)));
        write(encoder, &DRIFT, drift, |metric, value| metric.encode_gauge(value))?;
        let corrections = gauges.iter().map(|row| (at(row), row.agreement.corrections));
        write(encoder, &CORRECTIONS, corrections, counter)?;
        let ratios = Role::ALL
            .into_iter()
            .filter_map(|role| Some(([role.to_string()], concentration(gauges, role)?)));
        write(encoder, &CONCENTRATION, ratios, gauge)
    }

    /// One series per endpoint.
    fn per_endpoint<'a, T>(
        &'a self,
        value: impl Fn(&'a EndpointBook) -> T + 'a,
    ) -> impl Iterator<Item = Series<T, 2>> + 'a {
        let endpoints = self.tick.book.endpoints();
        endpoints.map(move |(at, book)| ([at.to_string(), book.role.to_string()], value(book)))
    }

    fn requests(&self, encoder: &mut Encoder<'_>) -> Result<(), Error> {
        let outcomes = self.tick.book.endpoints().flat_map(|(endpoint, book)| {
            book.outcomes.iter().map(move |(outcome, count)| {
                let labels =
                    [endpoint.to_string(), book.role.to_string(), outcome.code().to_owned()];
                (labels, *count)
            })
        });
        write(encoder, &REQUESTS, outcomes, counter)?;
        let invalid = self.per_endpoint(|book| book.framing_invalid);
        write(encoder, &FRAMING_INVALID, invalid, counter)?;
        write(encoder, &OUTPUT_TOKENS, self.per_endpoint(|book| book.output_tokens), counter)?;
        write(encoder, &TTFT, self.per_endpoint(|book| &book.ttft), |e, it| histogram(e, it))?;
        write(encoder, &TPOT, self.per_endpoint(|book| &book.tpot), |e, it| histogram(e, it))?;
        let durations = self.per_endpoint(|book| &book.duration);
        write(encoder, &DURATION, durations, |e, it| histogram(e, it))
    }

    fn legs(&self, encoder: &mut Encoder<'_>) -> Result<(), Error> {
        let legs = &self.tick.legs;
        write(encoder, &LEGS_PAIRED, [([], legs.paired)], counter)?;
        let unmatched = legs.unmatched.iter();
        let unmatched =
            unmatched.map(|((leg, reason), n)| ([*leg, *reason].map(str::to_owned), *n));
        write(encoder, &LEGS_UNMATCHED, unmatched, counter)?;
        let receipts = legs.receipts.iter().map(|(verdict, n)| ([(*verdict).to_owned()], *n));
        write(encoder, &RECEIPTS, receipts, counter)
    }

    fn capture(&self, encoder: &mut Encoder<'_>) -> Result<(), Error> {
        let counters = &self.tick.counters;
        let classes = |value: fn(&ClassCounters) -> u64| {
            [("segment", counters.segments), ("socket", counters.sockets)]
                .map(|(name, class)| ([name.to_owned()], value(&class)))
        };
        write(encoder, &RECORDS_ATTEMPTED, classes(|class| class.attempted), counter)?;
        write(encoder, &RECORDS_FAILED, classes(|class| class.failed), counter)?;
        write(encoder, &RECORDS_CONSUMED, classes(|class| class.consumed), counter)?;
        for (family, count) in [
            (PACKETS, counters.packets),
            (ENDPOINT_PACKETS, counters.endpoint_packets),
            (UNPARSED_PACKETS, counters.unparsed_packets),
            (PAYLOAD_BYTES, counters.payload_bytes),
            (GAPS, counters.gaps),
            (EVICTED_FLOWS, counters.evicted_flows),
            (ADOPTED_SEGMENTS, counters.adopted_segments),
            (OPAQUE_CONNECTIONS, counters.opaque_connections),
            (RETRANSMITS, counters.retransmits),
            (CONFLICTS, counters.conflicts),
            (MISSED_TRANSITIONS, counters.missed_transitions),
            (MISSED_RETRANSMITS, counters.missed_retransmits),
        ] {
            write(encoder, &family, [([], count)], counter)?;
        }
        let interfaces = || self.tick.interfaces.iter();
        let packets = interfaces().map(|it| ([it.name.clone()], it.packets));
        write(encoder, &INTERFACE_PACKETS, packets, counter)?;
        let preempted = interfaces().map(|it| ([it.name.clone()], it.preempted));
        write(encoder, &PREEMPTED, preempted, whole)
    }

    fn completeness(&self, encoder: &mut Encoder<'_>) -> Result<(), Error> {
        let found = &self.tick.reasons;
        write(encoder, &COMPLETE, [([], u64::from(found.is_empty()))], whole)?;
        let reasons = Reason::ALL
            .into_iter()
            .map(|reason| ([reason.code().to_owned()], u64::from(found.contains(&reason))));
        write(encoder, &INCOMPLETE, reasons, whole)?;
        write(encoder, &WINDOWS, [([], self.tick.windows as u64)], whole)?;
        write(encoder, &WINDOWS_EXPIRED, [([], self.tick.windows_expired)], counter)?;
        write(encoder, &FLOWS, [([], self.tick.flows as u64)], whole)
    }

    fn process(&self, encoder: &mut Encoder<'_>) -> Result<(), Error> {
        let Self { tick, process } = self;
        write(encoder, &RING_CAPACITY, [([], count_f64(process.ring_bytes))], gauge)?;
        write(encoder, &JSONL_ERRORS, [([], tick.jsonl_errors)], counter)?;
        let reloads = [("applied", process.reloads_applied), ("refused", process.reloads_refused)]
            .map(|(outcome, count)| ([outcome.to_owned()], count));
        write(encoder, &RELOADS, reloads, counter)?;
        let readings = process.discovery.iter().flat_map(|it| {
            [("applied", it.applied), ("unchanged", it.unchanged), ("failed", it.failed)]
        });
        let readings = readings.map(|(outcome, count)| ([outcome.to_owned()], count));
        write(encoder, &DISCOVERY_READINGS, readings, counter)?;
        let found = process.discovery.iter().map(|it| ([], it.endpoints));
        write(encoder, &DISCOVERED, found, whole)?;
        write(encoder, &API_REFUSED, [([], process.api_refused)], counter)?;
        write(encoder, &TICKS, [([], tick.number)], counter)?;
        write(encoder, &TICK_TIME, [([], process.tick_unix_s)], gauge)?;
        write(encoder, &START_TIME, [([], process.started_unix_s)], gauge)?;
        let build = [env!("CARGO_PKG_VERSION"), process.source, &process.kernel];
        let build = labels(&BUILD, build.map(str::to_owned));
        write(encoder, &BUILD, [([], build)], |metric, labels| metric.encode_info(labels))
    }
}

impl Collector for Exposition {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        self.in_flight(&mut encoder)?;
        self.requests(&mut encoder)?;
        self.legs(&mut encoder)?;
        self.capture(&mut encoder)?;
        self.completeness(&mut encoder)?;
        self.process(&mut encoder)
    }
}
