//! GuideLLM's `benchmarks.json`: one report of several benchmarks, each a rate; instants in seconds since 1970 and
//! latencies in milliseconds beside them.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

use super::error::{ImportError, shape};
use super::failure::Failure;
use super::units::{same, seconds_at};
use super::{Export, ExportedRequest, ExportedRun, Tool};
use crate::rundir::Lack;

const REPORT: &str = "name benchmarks.json as `guidellm run` wrote it";
/// The report version that is read.
const VERSION: u64 = 1;
/// Strategies without an offered rate.
const CLOSED_LOOPS: [&str; 3] = ["synchronous", "concurrent", "throughput"];

#[derive(Deserialize)]
struct Report {
    metadata: Option<Metadata>,
    benchmarks: Option<Vec<Benchmark>>,
}

#[derive(Deserialize)]
struct Metadata {
    version: Option<u64>,
    guidellm_version: Option<String>,
}

#[derive(Deserialize)]
struct Benchmark {
    config: Option<Config>,
    metrics: Option<Metrics>,
    requests: Option<Requests>,
}

#[derive(Deserialize)]
struct Config {
    strategy: Option<Strategy>,
}

#[derive(Deserialize)]
struct Strategy {
    #[serde(alias = "kind")]
    type_: Option<String>,
    rate: Option<f64>,
    max_concurrency: Option<u64>,
}

#[derive(Deserialize)]
struct Metrics {
    request_totals: Option<Totals>,
}

#[derive(Deserialize)]
struct Totals {
    successful: usize,
    incomplete: usize,
    errored: usize,
}

#[derive(Deserialize)]
struct Requests {
    #[serde(default)]
    successful: Option<Vec<Stats>>,
    #[serde(default)]
    incomplete: Option<Vec<Stats>>,
    #[serde(default)]
    errored: Option<Vec<Stats>>,
}

#[derive(Deserialize)]
struct Stats {
    info: Option<Info>,
    response_id: Option<String>,
    prompt_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    output_tokens: Option<u64>,
    time_to_first_token_ms: Option<f64>,
    inter_token_latency_ms: Option<f64>,
}

#[derive(Deserialize)]
struct Info {
    timings: Option<Timings>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Timings {
    targeted_start: Option<f64>,
    resolve_start: Option<f64>,
    request_start: Option<f64>,
    first_token_iteration: Option<f64>,
    last_token_iteration: Option<f64>,
    #[serde(default)]
    token_iterations: u64,
    request_end: Option<f64>,
    resolve_end: Option<f64>,
}

pub(super) fn decode(bytes: &[u8], path: &Path) -> Result<Export, ImportError> {
    let report: Report = serde_json::from_slice(bytes).map_err(|cause| ImportError::Json {
        path: path.to_owned(),
        at: String::new(),
        cause,
        shape: Tool::Guidellm.shape(),
    })?;
    let metadata = needed(report.metadata, "metadata", path)?;
    let version = needed(metadata.version, "metadata.version", path)?;
    if version != VERSION {
        let problem = format!("report version {version}, this reads version {VERSION}");
        return Err(shape(path, problem, "use a version of goodput that knows it"));
    }
    let benchmarks = needed(report.benchmarks, "benchmarks", path)?;
    let runs: Vec<ExportedRun> = (0..)
        .zip(&benchmarks)
        .map(|(nth, benchmark)| Place { path, nth }.benchmark(benchmark))
        .collect::<Result<_, _>>()?;
    if runs.is_empty() {
        return Err(shape(path, "no benchmark in it", REPORT));
    }
    Ok(Export { tool_version: metadata.guidellm_version, runs })
}

fn needed<T>(value: Option<T>, key: &str, path: &Path) -> Result<T, ImportError> {
    value.ok_or_else(|| shape(path, format!("key {key} is missing"), REPORT))
}

/// A benchmark of the report.
struct Place<'a> {
    path: &'a Path,
    nth: usize,
}

/// How GuideLLM files a request.
#[derive(Clone, Copy, PartialEq)]
enum Status {
    Successful,
    Incomplete,
    Errored,
}

impl Place<'_> {
    fn key(&self, key: &str) -> String {
        format!("benchmarks[{}].{key}", self.nth)
    }

    fn benchmark(&self, benchmark: &Benchmark) -> Result<ExportedRun, ImportError> {
        let requests = needed(benchmark.requests.as_ref(), &self.key("requests"), self.path)?;
        let lists = [
            (Status::Successful, requests.successful.as_deref().unwrap_or_default()),
            (Status::Incomplete, requests.incomplete.as_deref().unwrap_or_default()),
            (Status::Errored, requests.errored.as_deref().unwrap_or_default()),
        ];
        self.whole(benchmark, lists.map(|(_, list)| list.len()))?;
        let mut run =
            ExportedRun { lacks: BTreeSet::from([Lack::TokenCounts]), ..Default::default() };
        for (status, list) in lists {
            for stats in list {
                let request = self.request(status, stats, run.requests.len())?;
                run.requests.push(request);
            }
        }
        if run.requests.is_empty() {
            return Err(shape(self.path, format!("{} is empty", self.key("requests")), REPORT));
        }
        self.strategy(benchmark, &mut run)?;
        Ok(run)
    }

    /// A report may hold a sample of the requests only.
    fn whole(&self, benchmark: &Benchmark, listed: [usize; 3]) -> Result<(), ImportError> {
        let key = self.key("metrics.request_totals");
        let totals = benchmark.metrics.as_ref().and_then(|it| it.request_totals.as_ref());
        let totals = needed(totals, &key, self.path)?;
        let counted = [totals.successful, totals.incomplete, totals.errored];
        if counted == listed {
            return Ok(());
        }
        let problem = format!(
            "{key} counts {counted:?} successful, incomplete and errored requests, {listed:?} are listed"
        );
        Err(shape(self.path, problem, "measure without sampling of requests (--sample-requests)"))
    }

    fn strategy(&self, benchmark: &Benchmark, run: &mut ExportedRun) -> Result<(), ImportError> {
        let strategy = benchmark.config.as_ref().and_then(|config| config.strategy.as_ref());
        let strategy = needed(strategy, &self.key("config.strategy"), self.path)?;
        let kind = strategy.type_.as_deref().unwrap_or("unknown");
        if CLOSED_LOOPS.contains(&kind) {
            let problem = format!(
                "{} is {kind}, a closed loop without an offered rate",
                self.key("config.strategy")
            );
            return Err(shape(self.path, problem, "measure with a constant or poisson profile"));
        }
        if strategy.max_concurrency.is_some() {
            run.lacks.insert(Lack::OpenLoop);
        }
        run.rate_rps = strategy.rate;
        Ok(())
    }

    fn request(
        &self,
        status: Status,
        stats: &Stats,
        nth: usize,
    ) -> Result<ExportedRequest, ImportError> {
        let at = |key: &str| format!("{} of request {nth}", self.key(key));
        let info = needed(stats.info.as_ref(), &at("info"), self.path)?;
        let timings = needed(info.timings.as_ref(), &at("info.timings"), self.path)?;
        let time = |key: &str, value: Option<f64>| {
            value.map(|value| seconds_at(self.path, &at(key), value)).transpose()
        };
        let start = timings.request_start.or(timings.resolve_start).or(timings.targeted_start);
        let sent_ns = needed(time("request_start", start)?, &at("request_start"), self.path)?;
        let first_token_ns = time("first_token_iteration", timings.first_token_iteration)?;
        let last_token_ns = time("last_token_iteration", timings.last_token_iteration)?;
        let planned_ns = time("targeted_start", timings.targeted_start)?.unwrap_or(sent_ns);
        let end = time("request_end", timings.request_end.or(timings.resolve_end))?;
        if status == Status::Successful {
            self.units(stats, timings, nth)?;
        }
        Ok(ExportedRequest {
            planned_ns: planned_ns.min(sent_ns),
            sent_ns,
            first_token_ns,
            last_token_ns,
            end_ns: end.unwrap_or(sent_ns).max(last_token_ns.unwrap_or(sent_ns)),
            prompt_tokens: stats.prompt_tokens,
            cached_tokens: stats.cached_tokens,
            completion_tokens: stats.output_tokens,
            token_events: timings.token_iterations,
            tokens_from: None,
            response_id: stats.response_id.clone(),
            failure: failure(status, info.error.as_deref().unwrap_or_default()),
        })
    }

    /// Instants in seconds and latencies in milliseconds: each checks the other.
    fn units(&self, stats: &Stats, timings: &Timings, nth: usize) -> Result<(), ImportError> {
        let key = |key: &str| format!("{} of request {nth}", self.key(key));
        let (Some(start), Some(first), Some(last)) =
            (timings.request_start, timings.first_token_iteration, timings.last_token_iteration)
        else {
            let problem = format!(
                "{}: no instant of a token, so the response was not streamed",
                key("info.timings")
            );
            return Err(shape(self.path, problem, "measure a streaming endpoint"));
        };
        let ttft_ms =
            needed(stats.time_to_first_token_ms, &key("time_to_first_token_ms"), self.path)?;
        same(self.path, &key("time_to_first_token_ms"), first - start, ttft_ms)?;
        let tokens = stats.output_tokens.unwrap_or(0);
        match stats.inter_token_latency_ms {
            Some(itl_ms) if tokens > 1 => {
                let found = (last - first) / (tokens - 1) as f64;
                same(self.path, &key("inter_token_latency_ms"), found, itl_ms)
            }
            _ => Ok(()),
        }
    }
}

fn failure(status: Status, words: &str) -> Option<Failure> {
    match status {
        Status::Successful => None,
        Status::Incomplete => {
            Some(Failure::cancelled(if words.is_empty() { "incomplete" } else { words }))
        }
        Status::Errored => Some(Failure::of(words, None)),
    }
}
