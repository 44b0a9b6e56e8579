//! What a backend serves besides completions: health, model list, metrics.

use std::fmt::Write;

use super::Backend;
use crate::openai::error_body;

/// Prometheus text exposition format 0.0.4.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Status, content type and body of a page.
pub(super) fn page(backend: &Backend, path: &str) -> (u16, &'static str, String) {
    match path {
        "/health" => (200, "text/plain", String::new()),
        "/v1/models" => (200, "application/json", models(backend)),
        "/version" => (200, "application/json", version()),
        "/metrics" => (200, METRICS_TYPE, metrics(backend)),
        _ => (404, "application/json", error_body(404, "NotFoundError", "no such page")),
    }
}

fn version() -> String {
    serde_json::json!({ "version": concat!("simfleet-", env!("CARGO_PKG_VERSION")) }).to_string()
}

fn models(backend: &Backend) -> String {
    let engine = &backend.config.engine;
    let card = serde_json::json!({
        "id": engine.model, "object": "model", "created": 0, "owned_by": "simfleet (simulated)",
        "root": engine.model, "parent": null, "max_model_len": engine.max_model_len,
    });
    serde_json::json!({ "object": "list", "data": [card] }).to_string()
}

/// The names of vLLM (vllm/v1/metrics/loggers.py), with the model's own totals.
fn metrics(backend: &Backend) -> String {
    let stats = backend.engine.stats();
    let engine = &backend.config.engine;
    let used = stats.cached_blocks as f64 / engine.cache_blocks.max(1) as f64;
    let rows: [(&str, &str, &str, f64); 11] = [
        ("vllm:num_requests_running", "gauge", "", stats.running as f64),
        ("vllm:num_requests_waiting", "gauge", "", stats.waiting as f64),
        ("vllm:kv_cache_usage_perc", "gauge", "", used),
        ("vllm:prefix_cache_queries_total", "counter", "", stats.queried_tokens as f64),
        ("vllm:prefix_cache_hits_total", "counter", "", stats.hit_tokens as f64),
        ("vllm:prompt_tokens_total", "counter", "", stats.prompt_tokens as f64),
        ("vllm:generation_tokens_total", "counter", "", stats.generated_tokens as f64),
        ("vllm:num_preemptions_total", "counter", "", 0.0),
        (
            "vllm:request_success_total",
            "counter",
            ",finished_reason=\"length\"",
            stats.finished as f64,
        ),
        (
            "vllm:request_success_total",
            "counter",
            ",finished_reason=\"abort\"",
            stats.cancelled as f64,
        ),
        ("vllm:cache_config_info", "gauge", &cache_labels(engine), 1.0),
    ];
    let mut text = String::from("# simfleet: simulated engine, not vLLM\n");
    let mut typed = "";
    for (name, kind, labels, value) in rows {
        if typed != name {
            let _ = writeln!(text, "# TYPE {name} {kind}");
            typed = name;
        }
        let model = label(&engine.model);
        let _ = writeln!(text, "{name}{{engine=\"0\",model_name=\"{model}\"{labels}}} {value}");
    }
    text
}

fn cache_labels(engine: &crate::config::EngineConfig) -> String {
    let (size, blocks) = (engine.block_tokens, engine.cache_blocks);
    format!(",block_size=\"{size}\",num_gpu_blocks=\"{blocks}\",enable_prefix_caching=\"True\"")
}

/// A label value with the characters escaped that the format reserves.
fn label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
