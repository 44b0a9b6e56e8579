//! `vllm bench serve --save-result --save-detailed`: one JSON object a run, arrays by request, times in seconds.
//!
//! `--append-result` writes several objects into one file; each is a run.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::error::{ImportError, shape};
use super::failure::Failure;
use super::units::{same, seconds_at};
use super::{Export, ExportedRequest, ExportedRun, Tool};
use crate::rundir::Lack;

const DETAILED: &str = "measure with `vllm bench serve --save-result --save-detailed`";
/// `duration` is read after the last request; two clock reads lie between.
const DURATION_SLACK_S: f64 = 0.1;

#[derive(Deserialize)]
struct Run {
    model_id: Option<String>,
    request_rate: Option<Value>,
    max_concurrency: Option<u64>,
    ramp_up_strategy: Option<String>,
    duration: Option<f64>,
    completed: Option<u64>,
    mean_ttft_ms: Option<f64>,
    mean_itl_ms: Option<f64>,
    input_lens: Option<Vec<u64>>,
    output_lens: Option<Vec<u64>>,
    ttfts: Option<Vec<f64>>,
    itls: Option<Vec<Vec<f64>>>,
    start_times: Option<Vec<f64>>,
    queue_times: Option<Vec<f64>>,
    errors: Option<Vec<String>>,
}

pub(super) fn decode(bytes: &[u8], path: &Path) -> Result<Export, ImportError> {
    let mut runs = Vec::new();
    for run in serde_json::Deserializer::from_slice(bytes).into_iter::<Run>() {
        let run = run.map_err(|cause| ImportError::Json {
            path: path.to_owned(),
            at: String::new(),
            cause,
            shape: Tool::VllmBench.shape(),
        })?;
        runs.push(one(&run, path)?);
    }
    if runs.is_empty() {
        return Err(shape(path, "no run in it", DETAILED));
    }
    Ok(Export { tool_version: None, runs })
}

/// The arrays that every request has an entry of.
struct Rows<'a> {
    starts: &'a [f64],
    ttfts: &'a [f64],
    itls: &'a [Vec<f64>],
    inputs: &'a [u64],
    outputs: &'a [u64],
    errors: &'a [String],
    queued: Option<&'a [f64]>,
}

fn one(run: &Run, path: &Path) -> Result<ExportedRun, ImportError> {
    let rows = rows(run, path)?;
    let delivered = rows.errors.iter().filter(|error| error.is_empty()).count();
    let said = needed(run.completed, "completed", path)?;
    if said != delivered as u64 {
        let problem = format!("completed is {said}, {delivered} requests have no error");
        return Err(shape(path, problem, "name the export as the tool wrote it"));
    }
    units(run, &rows, path)?;
    let requests =
        (0..rows.starts.len()).map(|at| request(&rows, at, path)).collect::<Result<_, _>>()?;
    let mut lacks = BTreeSet::from([Lack::PlannedInstants, Lack::TokenCounts]);
    if run.max_concurrency.is_some() {
        lacks.insert(Lack::OpenLoop);
    }
    Ok(ExportedRun { rate_rps: rate(run, path)?, model: run.model_id.clone(), requests, lacks })
}

fn needed<T>(value: Option<T>, key: &str, path: &Path) -> Result<T, ImportError> {
    value.ok_or_else(|| shape(path, format!("key {key} is missing"), DETAILED))
}

fn rows<'a>(run: &'a Run, path: &Path) -> Result<Rows<'a>, ImportError> {
    let rows = Rows {
        starts: needed(run.start_times.as_deref(), "start_times", path)?,
        ttfts: needed(run.ttfts.as_deref(), "ttfts", path)?,
        itls: needed(run.itls.as_deref(), "itls", path)?,
        inputs: needed(run.input_lens.as_deref(), "input_lens", path)?,
        outputs: needed(run.output_lens.as_deref(), "output_lens", path)?,
        errors: needed(run.errors.as_deref(), "errors", path)?,
        queued: run.queue_times.as_deref(),
    };
    let n = rows.starts.len();
    let lengths = [
        ("ttfts", rows.ttfts.len()),
        ("itls", rows.itls.len()),
        ("input_lens", rows.inputs.len()),
        ("output_lens", rows.outputs.len()),
        ("errors", rows.errors.len()),
        ("queue_times", rows.queued.map_or(n, <[f64]>::len)),
    ];
    match lengths.into_iter().find(|(_, length)| *length != n) {
        Some((key, length)) => {
            let problem = format!("{key} has {length} entries, start_times has {n}");
            Err(shape(path, problem, "name the export as the tool wrote it"))
        }
        None if n == 0 => Err(shape(path, "no request in it", DETAILED)),
        None => Ok(rows),
    }
}

/// The arrays are in seconds and the summary in milliseconds, so each checks the other.
fn units(run: &Run, rows: &Rows<'_>, path: &Path) -> Result<(), ImportError> {
    let delivered: Vec<usize> =
        (0..rows.starts.len()).filter(|at| rows.errors[*at].is_empty()).collect();
    let Some(first) = delivered.first() else { return Ok(()) };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let ttfts: Vec<f64> = delivered.iter().map(|at| rows.ttfts[*at]).collect();
    let said = run.mean_ttft_ms.ok_or_else(|| {
        let problem = "key mean_ttft_ms is missing, so the unit of ttfts cannot be checked";
        shape(path, problem, "keep ttft in --percentile-metrics")
    })?;
    same(path, "mean TTFT", mean(&ttfts), said)?;
    let itls: Vec<f64> = delivered.iter().flat_map(|at| rows.itls[*at].iter().copied()).collect();
    if let Some(said) = run.mean_itl_ms.filter(|_| !itls.is_empty()) {
        same(path, "mean ITL", mean(&itls), said)?;
    }
    let duration = needed(run.duration, "duration", path)?;
    let end = |at: &usize| rows.starts[*at] + rows.ttfts[*at] + rows.itls[*at].iter().sum::<f64>();
    let start = delivered.iter().map(|at| rows.starts[*at]).fold(rows.starts[*first], f64::min);
    let span = delivered.iter().map(end).fold(start, f64::max) - start;
    if span <= duration + DURATION_SLACK_S {
        return Ok(());
    }
    let problem = format!(
        "its requests span {span:.3} s, duration is {duration:.3} s: a wrong or mixed unit, or an edited file"
    );
    Err(shape(path, problem, "name the export as the tool wrote it"))
}

fn request(rows: &Rows<'_>, at: usize, path: &Path) -> Result<ExportedRequest, ImportError> {
    let ns = |key: &str, value: f64| seconds_at(path, &format!("{key} of request {at}"), value);
    let sent_ns = ns("start_times", rows.starts[at])?;
    let queued_ns = rows.queued.map_or(Ok(0), |queued| ns("queue_times", queued[at]))?;
    let ttft_ns = ns("ttfts", rows.ttfts[at])?;
    let rest_ns = ns("itls", rows.itls[at].iter().sum::<f64>())?;
    let failure = (!rows.errors[at].is_empty()).then(|| Failure::of(&rows.errors[at], None));
    let tokens = rows.outputs[at];
    // A TTFT of 0 is how vLLM writes that there was none.
    let first = (ttft_ns > 0).then(|| sent_ns.saturating_add(ttft_ns));
    let no_token = (failure.is_none() && (first.is_none() || tokens == 0))
        .then(|| Failure::of("no token", None));
    Ok(ExportedRequest {
        planned_ns: sent_ns.saturating_sub(queued_ns),
        sent_ns,
        first_token_ns: first,
        last_token_ns: first.map(|first| first.saturating_add(rest_ns)),
        end_ns: sent_ns.saturating_add(ttft_ns).saturating_add(rest_ns),
        prompt_tokens: Some(rows.inputs[at]),
        cached_tokens: None,
        completion_tokens: Some(tokens),
        token_events: first.map_or(0, |_| rows.itls[at].len() as u64 + 1),
        tokens_from: None,
        response_id: None,
        failure: failure.or(no_token),
    })
}

fn rate(run: &Run, path: &Path) -> Result<Option<f64>, ImportError> {
    let mend = "measure with `--request-rate R`, one rate a run";
    if let Some(strategy) = &run.ramp_up_strategy {
        return Err(shape(
            path,
            format!("ramp_up_strategy is {strategy}: there is no one rate"),
            mend,
        ));
    }
    match &run.request_rate {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(rate)) => Ok(rate.as_f64()),
        Some(other) => {
            let problem =
                format!("request_rate is {other}: all requests at once have no offered rate");
            Err(shape(path, problem, mend))
        }
    }
}
