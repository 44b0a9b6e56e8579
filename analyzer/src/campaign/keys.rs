//! The keys of a campaign file, one struct a table. Unknown keys are refused.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::replay::Connections;
use crate::rundir::Expected;
use crate::trace::TraceFormat;

/// The whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CampaignKeys {
    /// What the campaign is called in reports.
    pub name: String,
    /// Repetition i uses seed + i for its schedule and its order of arms.
    pub seed: u64,
    /// Run directory, relative to the working directory.
    pub run_dir: PathBuf,
    /// What is replayed.
    pub trace: TraceKeys,
    /// How it becomes HTTP requests.
    pub request: RequestKeys,
    /// How requests are sent.
    #[serde(default)]
    pub replay: ReplayKeys,
    /// What a good request is.
    pub slo: SloKeys,
    /// How much and how often.
    pub load: LoadKeys,
    /// What is sent before an arm is measured.
    #[serde(default)]
    pub warmup: WarmupKeys,
    /// Phase 2.
    #[serde(default)]
    pub probe: ProbeKeys,
    /// How repetitions become a verdict.
    #[serde(default)]
    pub statistics: StatisticsKeys,
    /// Bounds of validity.
    #[serde(default)]
    pub thresholds: ThresholdKeys,
    /// Routing configurations under test.
    pub arm: Vec<ArmKeys>,
    /// Inference servers behind the gateways.
    pub backend: Vec<BackendKeys>,
    /// The records come from another tool's export; `goodput import` writes it.
    pub imported: Option<ImportedKeys>,
    /// Agents that watch in the kernel.
    #[serde(default)]
    pub agent: Vec<AgentKeys>,
}

/// `[trace]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceKeys {
    /// Trace file, relative to the campaign.
    pub path: PathBuf,
    /// Format; recognised by the first row when absent.
    pub format: Option<TraceFormat>,
    /// Divides input, output and block lengths alike.
    #[serde(default = "one")]
    pub length_divisor: u64,
    /// UTF-8 bytes of prompt text that stand for one token.
    #[serde(default = "four")]
    pub bytes_per_token: u64,
    /// Rows left out at the start.
    #[serde(default)]
    pub skip: usize,
    /// Rows kept after those.
    pub limit: Option<usize>,
    /// JSON file with the trace's source, rule and row numbers; copied into the manifest.
    pub origin: Option<PathBuf>,
}

/// Which OpenAI call is replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// `/v1/chat/completions`.
    #[default]
    Chat,
    /// `/v1/completions`.
    Completions,
}

/// How the engine is made to produce exactly the trace's output length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthControl {
    /// `ignore_eos: true`.
    #[default]
    IgnoreEos,
    /// `min_tokens` = `max_tokens`.
    MinTokens,
    /// Nothing beside `max_tokens`.
    None,
}

/// `[request]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestKeys {
    /// Model name in the body.
    pub model: String,
    /// Which call.
    #[serde(default)]
    pub api: Api,
    /// How the output length is held.
    #[serde(default)]
    pub length_control: LengthControl,
    /// File with the bearer token of the VIPs, relative to the campaign.
    pub token_file: Option<PathBuf>,
}

/// `[replay]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayKeys {
    /// Whether connections are used again.
    #[serde(default)]
    pub connections: Connections,
}

/// `[slo]`; exactly one of `multiple_of_baseline`, `derived` and `fixed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SloKeys {
    /// Good-fraction that a rate must reach to count as sustained.
    #[serde(default = "ninety_percent")]
    pub target: f64,
    /// Deadline from the planned instant, ms; computed and recorded when absent.
    pub deadline_ms: Option<f64>,
    /// Past the deadline, silence of this length makes the request stalled instead of slow, s.
    #[serde(default = "ten")]
    pub stall_s: f64,
    /// Derived from the floor arm.
    pub multiple_of_baseline: Option<BaselineMultiple>,
    /// Derived before, by `goodput slo derive`.
    pub derived: Option<DerivedKeys>,
    /// Given.
    pub fixed: Option<FixedSlo>,
}

/// `slo.multiple_of_baseline`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaselineMultiple {
    /// TTFT SLO / unloaded median TTFT.
    pub ttft_multiple: f64,
    /// TPOT SLO / unloaded median TPOT.
    pub tpot_multiple: f64,
    /// Requests sent one at a time; at least 100.
    #[serde(default = "hundred")]
    pub requests: u64,
}

/// `slo.derived`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DerivedKeys {
    /// What `goodput slo derive` wrote, relative to the campaign.
    pub file: PathBuf,
    /// SHA-256 of it, so that the campaign's own hash registers the bounds.
    pub sha256: String,
}

/// `slo.fixed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedSlo {
    /// Largest TTFT of a good request, ms.
    pub ttft_ms: f64,
    /// Largest TPOT of a good request, ms per token.
    pub tpot_ms: f64,
    /// Where the two numbers come from; never empty.
    #[serde(default)]
    pub origin: String,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Exponential gaps.
    Poisson,
    /// Equal gaps.
    Constant,
    /// The trace's own gaps, stretched to the rate.
    Trace,
}

/// `[load]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadKeys {
    /// Offered rates of the ladder, requests per second.
    pub rates_rps: Vec<f64>,
    /// When requests are sent.
    pub arrivals: Arrivals,
    /// Repetitions of every cell. More than 5 raise what a verdict needs; fewer never lower it.
    #[serde(default = "five")]
    pub repetitions: u32,
    /// Repetitions at which adding more ends.
    #[serde(default = "fifteen")]
    pub max_repetitions: u32,
    /// Rounds in which repetitions that the validity gates discarded are made up for in the same run.
    /// The gates do not look at the good-fraction, so this is no stopping rule on the result.
    #[serde(default)]
    pub replace_invalid: u32,
}

/// The methodology publishes nothing on fewer repetitions (section 8.2), whatever a campaign asks for.
const LEAST_PUBLISHED: u32 = 5;

impl LoadKeys {
    /// Valid repetitions that a cell needs before a verdict may be published.
    #[must_use]
    pub fn published_repetitions(&self) -> u32 {
        self.repetitions.max(LEAST_PUBLISHED)
    }
}

/// `[warmup]`: sent once per arm, recorded, never analysed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmupKeys {
    /// Requests, at the ladder's lowest rate.
    #[serde(default = "forty")]
    pub requests: usize,
}

impl Default for WarmupKeys {
    fn default() -> Self {
        Self { requests: forty() }
    }
}

/// `[probe]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeKeys {
    /// Length of the burst, seconds.
    #[serde(default = "ten")]
    pub seconds: f64,
    /// Rate of the burst, requests per second; the ladder's lowest when absent.
    pub rate_rps: Option<f64>,
}

impl Default for ProbeKeys {
    fn default() -> Self {
        Self { seconds: ten(), rate_rps: None }
    }
}

/// How two arms are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// Repetitions of the two arms as independent samples.
    #[default]
    Welch,
    /// Repetition i of both arms as a pair.
    Paired,
}

/// What a request without a TPOT counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SingleTokenPolicy {
    /// Good when its TTFT is.
    #[default]
    TtftOnly,
    /// Never good.
    Miss,
}

/// `[statistics]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StatisticsKeys {
    /// Confidence of two-sided intervals.
    pub confidence: f64,
    /// Level of each one-sided test of equivalence.
    pub alpha: f64,
    /// Equivalence margin in good-fraction points; no parity is claimed without one.
    pub delta: Option<f64>,
    /// How arms are compared.
    pub comparison: Comparison,
    /// Largest coefficient of variation of a published cell.
    pub cv_bound: f64,
    /// Floor repetitions from which a noise floor is computed.
    pub min_baseline_reps: usize,
    /// What a request without a TPOT counts as.
    pub single_token: SingleTokenPolicy,
    /// Accept chunk counts where usage is missing.
    pub tokens_from_chunks: bool,
}

impl Default for StatisticsKeys {
    fn default() -> Self {
        Self {
            confidence: 0.95,
            alpha: 0.05,
            delta: None,
            comparison: Comparison::Welch,
            cv_bound: 0.10,
            min_baseline_reps: 3,
            single_token: SingleTokenPolicy::TtftOnly,
            tokens_from_chunks: false,
        }
    }
}

/// `[thresholds]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ThresholdKeys {
    /// Largest p99 of dispatched - planned, ms; 1 % of the TTFT SLO when that is smaller.
    pub client_lag_p99_ms: f64,
    /// Least achieved / offered rate.
    pub achieved_share: f64,
    /// Largest share of completed requests without both legs in the kernel's record.
    pub unpaired_share: f64,
    /// Largest departure of mean tokens from the trace before it is reported.
    pub workload_share: f64,
    /// Leading blocks that make a prefix "previously sent" in the decision proof.
    pub prefix_blocks: usize,
}

impl Default for ThresholdKeys {
    fn default() -> Self {
        Self {
            client_lag_p99_ms: 5.0,
            achieved_share: 0.99,
            unpaired_share: 0.01,
            workload_share: 0.05,
            prefix_blocks: 1,
        }
    }
}

/// A lag of the client above this share of the TTFT SLO would decide what is good.
const LAG_SHARE_OF_TTFT_SLO: f64 = 0.01;

impl ThresholdKeys {
    /// Largest p99 of dispatched - planned, ns, under a TTFT SLO of `ttft_ns`.
    #[must_use]
    pub fn client_lag_bound_ns(&self, ttft_ns: u64) -> f64 {
        (self.client_lag_p99_ms * 1e6).min(ttft_ns as f64 * LAG_SHARE_OF_TTFT_SLO)
    }
}

/// `[[arm]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmKeys {
    /// Letters, digits, `-` and `_`: it becomes a directory name.
    pub name: String,
    /// The baseline that routing must beat; exactly one arm.
    #[serde(default)]
    pub floor: bool,
    /// Base URL of the virtual service.
    pub vip: String,
    /// Base URL of the gateway's REST API, up to `/netlox/v1`.
    pub rest: Option<String>,
    /// URL of the gateway's metrics.
    pub metrics: Option<String>,
    /// Gateway log: a file relative to the campaign, or an `http://` URL.
    pub log: Option<String>,
    /// What the readback must show.
    #[serde(default)]
    pub expected: Expected,
    /// Accelerators behind the arm.
    pub accelerators: u64,
    /// Decision proof: least hits / requests with a previously sent prefix.
    pub min_hit_share: Option<f64>,
    /// Decision proof: largest misses / requests.
    pub max_miss_share: Option<f64>,
    /// Wait before each reading of the counters, s: LoxiLB refreshes them every 10 s.
    #[serde(default = "twelve")]
    pub metrics_settle_s: f64,
}

/// `[[backend]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackendKeys {
    /// address:port.
    pub address: String,
    /// `backend`, `prefill` or `decode`.
    #[serde(default = "backend_role")]
    pub role: String,
    /// Declared capacity, tokens per second: prompt tokens for prefill, output tokens for decode.
    pub capacity_tokens_per_s: f64,
}

/// `[imported]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportedKeys {
    /// The tool that measured, as `goodput import` names it.
    pub tool: String,
}

/// `[[agent]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentKeys {
    /// Names its files when there are several.
    pub name: String,
    /// Base URL of its API.
    pub url: String,
    /// `gateway`, `backend` or `host` (both).
    pub role: String,
    /// File with its bearer token, relative to the campaign.
    pub token_file: Option<PathBuf>,
}

fn one() -> u64 {
    1
}
fn four() -> u64 {
    4
}
fn five() -> u32 {
    5
}
fn ten() -> f64 {
    10.0
}
fn twelve() -> f64 {
    12.0
}
fn fifteen() -> u32 {
    15
}
fn forty() -> usize {
    40
}
fn hundred() -> u64 {
    100
}
fn ninety_percent() -> f64 {
    0.9
}
fn backend_role() -> String {
    "backend".to_owned()
}
