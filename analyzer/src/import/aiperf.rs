//! NVIDIA AIPerf's `profile_export.jsonl`: one JSON object a request; instants in nanoseconds since 1970, metrics with
//! their unit beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::error::{ImportError, shape};
use super::failure::Failure;
use super::units::factor;
use super::{Export, ExportedRequest, ExportedRun, Tool};
use crate::rundir::Lack;

const RECORDS: &str = "name profile_export.jsonl, the per-request records that `aiperf profile --streaming` \
                       writes by default";
/// Latency over the time between the two instants of the request: outside, one of them is in another unit.
const LATENCY_BAND: std::ops::RangeInclusive<f64> = 0.5..=1.05;
/// TPOT as AIPerf divides it, over TPOT from the latencies.
const ITL_BAND: std::ops::RangeInclusive<f64> = 0.9..=1.1;

#[derive(Deserialize)]
struct Record {
    metadata: Option<Metadata>,
    #[serde(default)]
    metrics: BTreeMap<String, Metric>,
    error: Option<Error>,
}

#[derive(Deserialize)]
struct Metadata {
    credit_issued_ns: Option<u64>,
    request_start_ns: Option<u64>,
    request_end_ns: Option<u64>,
    benchmark_phase: Option<String>,
    #[serde(default)]
    was_cancelled: bool,
}

#[derive(Deserialize)]
struct Metric {
    value: Value,
    unit: Option<String>,
}

#[derive(Deserialize)]
struct Error {
    code: Option<Value>,
    #[serde(rename = "type")]
    kind: Option<String>,
    message: Option<String>,
}

pub(super) fn decode(bytes: &[u8], path: &Path) -> Result<Export, ImportError> {
    let mut reader = Reader { path, units: BTreeMap::new(), ratios: Vec::new() };
    let mut run = ExportedRun {
        lacks: BTreeSet::from([Lack::TokenCounts, Lack::PlannedInstants]),
        ..ExportedRun::default()
    };
    for (line, text) in (1_usize..).zip(bytes.split(|byte| *byte == b'\n')) {
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        run.requests.extend(reader.line(line, text)?);
    }
    if run.requests.is_empty() {
        return Err(shape(path, "no request of the profiling phase in it", RECORDS));
    }
    reader.check_latencies()?;
    Ok(Export { tool_version: None, runs: vec![run] })
}

struct Reader<'a> {
    path: &'a Path,
    /// Unit of each metric, where it was first seen.
    units: BTreeMap<&'static str, (String, usize)>,
    /// Latency over the time between the instants.
    ratios: Vec<f64>,
}

impl Reader<'_> {
    fn bad(&self, line: usize, problem: &str) -> ImportError {
        shape(self.path, format!("line {line}: {problem}"), RECORDS)
    }

    fn line(&mut self, line: usize, text: &[u8]) -> Result<Option<ExportedRequest>, ImportError> {
        let record: Record = serde_json::from_slice(text).map_err(|cause| ImportError::Json {
            path: self.path.to_owned(),
            at: format!("line {line}: "),
            cause,
            shape: Tool::Aiperf.shape(),
        })?;
        let Some(metadata) = &record.metadata else {
            return Err(self.bad(line, "no metadata: this is no per-request record"));
        };
        let key = |value: Option<u64>, key: &str| {
            value.ok_or_else(|| self.bad(line, &format!("key metadata.{key} is missing")))
        };
        let sent_ns = key(metadata.request_start_ns, "request_start_ns")?;
        let end_ns = key(metadata.request_end_ns, "request_end_ns")?;
        if end_ns < sent_ns {
            return Err(self.bad(line, "request_end_ns is before request_start_ns"));
        }
        if metadata.benchmark_phase.as_deref() == Some("warmup") {
            return Ok(None);
        }
        let request = ExportedRequest {
            planned_ns: metadata.credit_issued_ns.unwrap_or(sent_ns).min(sent_ns),
            sent_ns,
            first_token_ns: None,
            last_token_ns: None,
            end_ns,
            prompt_tokens: self.count(&record, "input_sequence_length"),
            cached_tokens: None,
            completion_tokens: None,
            token_events: 0,
            tokens_from: None,
            response_id: None,
            failure: failure(&record, metadata),
        };
        match request.failure {
            Some(_) => Ok(Some(request)),
            None => self.delivered(line, &record, request).map(Some),
        }
    }

    fn delivered(
        &mut self,
        line: usize,
        record: &Record,
        request: ExportedRequest,
    ) -> Result<ExportedRequest, ImportError> {
        let ttft = self.time(line, record, "time_to_first_token")?;
        let latency = self.time(line, record, "request_latency")?;
        let (Some(ttft), Some(latency)) = (ttft, latency) else {
            let problem =
                "no time_to_first_token or request_latency, so the response was not streamed";
            return Err(self.bad(line, problem));
        };
        if ttft > latency {
            return Err(self
                .bad(line, "time_to_first_token is above request_latency: a wrong or mixed unit"));
        }
        let tokens = self.count(record, "output_sequence_length");
        let Some(tokens) = tokens else {
            return Err(self.bad(line, "key metrics.output_sequence_length is missing"));
        };
        self.check_itl(line, record, latency - ttft, tokens)?;
        let between = request.end_ns - request.sent_ns;
        if between > 0 {
            self.ratios.push(latency as f64 / between as f64);
        }
        let first = request.sent_ns.saturating_add(ttft);
        let last = request.sent_ns.saturating_add(latency);
        let chunks = record.metrics.get("inter_chunk_latency").and_then(|it| it.value.as_array());
        Ok(ExportedRequest {
            first_token_ns: Some(first),
            last_token_ns: Some(last),
            end_ns: request.end_ns.max(last),
            completion_tokens: Some(tokens),
            token_events: chunks.map_or(1, |chunks| chunks.len() as u64 + 1),
            ..request
        })
    }

    fn check_itl(
        &mut self,
        line: usize,
        record: &Record,
        span_ns: u64,
        tokens: u64,
    ) -> Result<(), ImportError> {
        let Some(said) = self.time(line, record, "inter_token_latency")? else { return Ok(()) };
        let found = span_ns as f64 / tokens.saturating_sub(1).max(1) as f64;
        // A microsecond is the rounding of a decimal of milliseconds.
        let near = (said as f64 - found).abs() <= 1_000.0;
        if near || ITL_BAND.contains(&(said as f64 / found)) {
            return Ok(());
        }
        let problem = format!(
            "inter_token_latency is {said} ns, the latencies give {found:.0} ns: a wrong or mixed unit"
        );
        Err(self.bad(line, &problem))
    }

    fn count(&self, record: &Record, key: &str) -> Option<u64> {
        let value = &record.metrics.get(key)?.value;
        value.as_u64().or_else(|| whole(value.as_f64()?))
    }

    /// A metric in nanoseconds; one unit for all lines.
    fn time(
        &mut self,
        line: usize,
        record: &Record,
        key: &'static str,
    ) -> Result<Option<u64>, ImportError> {
        let Some(metric) = record.metrics.get(key) else { return Ok(None) };
        let unit = metric.unit.as_deref().unwrap_or("none");
        let Some(factor) = factor(unit) else {
            return Err(self.bad(line, &format!("{key} has the unit {unit:?}, which is no time")));
        };
        let (known, since) = self.units.entry(key).or_insert_with(|| (unit.to_owned(), line));
        if known != unit {
            let problem =
                format!("{key} is in {unit}, since line {since} it was in {known}: a mixed unit");
            return Err(self.bad(line, &problem));
        }
        let value = metric.value.as_f64().and_then(|value| whole(value * factor));
        value
            .map(Some)
            .ok_or_else(|| self.bad(line, &format!("{key} is {}, which is no time", metric.value)))
    }

    /// Metrics against instants over all lines: one request may be odd, most are not.
    fn check_latencies(&mut self) -> Result<(), ImportError> {
        self.ratios.sort_by(f64::total_cmp);
        let Some(median) = self.ratios.get(self.ratios.len() / 2) else { return Ok(()) };
        if LATENCY_BAND.contains(median) {
            return Ok(());
        }
        let problem = format!(
            "request_latency is {median:.3e} times the time from request_start_ns to request_end_ns: a wrong or mixed unit"
        );
        Err(shape(self.path, problem, "name the export as the tool wrote it"))
    }
}

/// A number that is not negative, rounded.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be positive and far below 2^64"
)]
fn whole(value: f64) -> Option<u64> {
    (0.0..1e18).contains(&value).then(|| value.round() as u64)
}

fn failure(record: &Record, metadata: &Metadata) -> Option<Failure> {
    let Some(error) = &record.error else {
        return metadata.was_cancelled.then(|| Failure::cancelled("was_cancelled"));
    };
    let code = error.code.as_ref().and_then(|code| {
        code.as_u64().or_else(|| code.as_str()?.parse().ok()).and_then(|it| u16::try_from(it).ok())
    });
    let words = [error.kind.as_deref(), error.message.as_deref()];
    let words = words.into_iter().flatten().collect::<Vec<_>>().join(": ");
    Some(if metadata.was_cancelled {
        Failure::cancelled(&words)
    } else {
        Failure::of(&words, code)
    })
}
