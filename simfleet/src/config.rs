//! What a fleet consists of. The TOML form of it is read by [`FleetConfig::from_toml`].

mod file;
mod keep_alive;
mod places;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::blocks::Tokenizer;
use crate::error::FleetError;
use crate::fault::{BackendFault, GatewayFault};
use crate::model::ModelParams;

pub use keep_alive::{GatewayKeepAlive, KeepAliveLimits, Upstream};

/// A whole fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetConfig {
    /// Where one JSON line per request is appended, if anywhere.
    pub request_log: Option<PathBuf>,
    /// The inference servers.
    pub backends: Vec<BackendConfig>,
    /// The gateways in front of them.
    pub gateways: Vec<GatewayConfig>,
}

/// One simulated inference server.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendConfig {
    /// Its name in logs and in the gateways' lists.
    pub name: String,
    /// Where it listens; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Its engine.
    pub engine: EngineConfig,
    /// How long it keeps a client's connection.
    pub keep_alive: KeepAliveLimits,
    /// A fault that it commits on every completion request.
    pub fault: Option<BackendFault>,
}

/// The engine of a backend: table `[engine]`, and `[backend.engine]` for one backend's differences.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineConfig {
    /// The model name that it serves.
    pub model: String,
    /// Largest sum of prompt and output tokens.
    pub max_model_len: u64,
    /// Uncached prompt tokens prefilled per second.
    pub prefill_tokens_per_s: u64,
    /// Microseconds between two tokens of one request.
    pub decode_interval_us: u64,
    /// Share by which each other decoding request stretches the interval (0.02 = 2 % each).
    pub decode_slowdown_per_active: f64,
    /// Requests served at once.
    pub slots: usize,
    /// UTF-8 bytes of prompt that make one token.
    pub bytes_per_token: u64,
    /// Tokens in one prefix-cache block.
    pub block_tokens: u64,
    /// Blocks that the prefix cache holds; the least recently used leaves first.
    pub cache_blocks: usize,
    /// Tokens in one streamed chunk after the first, which always holds one.
    pub tokens_per_chunk: u64,
    /// When the role-only first chunk of a chat stream is sent.
    pub role_chunk: RoleChunk,
}

/// When the role-only first chunk of a chat stream is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleChunk {
    /// Just before the first token, as vLLM does.
    WithFirstToken,
    /// As soon as prefill begins, as servers do that answer early.
    AtPrefillStart,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            model: "sim-model".to_owned(),
            max_model_len: 131_072,
            prefill_tokens_per_s: 8_000,
            decode_interval_us: 10_000,
            decode_slowdown_per_active: 0.0,
            slots: 16,
            bytes_per_token: 4,
            block_tokens: 64,
            cache_blocks: 4_096,
            tokens_per_chunk: 1,
            role_chunk: RoleChunk::WithFirstToken,
        }
    }
}

impl EngineConfig {
    /// The model's constants.
    #[must_use]
    pub fn params(&self) -> ModelParams {
        ModelParams {
            prefill_tokens_per_s: self.prefill_tokens_per_s,
            decode_interval_ns: self.decode_interval_us.saturating_mul(1_000),
            slowdown_ppm: millionths(self.decode_slowdown_per_active),
            slots: self.slots,
            block_tokens: self.block_tokens,
            cache_blocks: self.cache_blocks,
        }
    }

    /// How prompts become tokens and blocks.
    #[must_use]
    pub fn tokenizer(&self) -> Tokenizer {
        Tokenizer { bytes_per_token: self.bytes_per_token, block_tokens: self.block_tokens }
    }

    fn validate(&self, place: &str) -> Result<(), FleetError> {
        let positive = [
            ("prefill_tokens_per_s", self.prefill_tokens_per_s),
            ("slots", self.slots as u64),
            ("bytes_per_token", self.bytes_per_token),
            ("block_tokens", self.block_tokens),
            ("tokens_per_chunk", self.tokens_per_chunk),
            ("max_model_len", self.max_model_len),
        ];
        for (key, value) in positive {
            if value == 0 {
                let place = format!("{place}.{key}");
                return Err(FleetError::invalid(place, "0 is not possible", "use 1 or more"));
            }
        }
        let slowdown = self.decode_slowdown_per_active;
        if !(0.0..=100.0).contains(&slowdown) {
            let place = format!("{place}.decode_slowdown_per_active");
            return Err(FleetError::invalid(place, slowdown.to_string(), "use 0 to 100"));
        }
        Ok(())
    }
}

/// A validated share (0 to 100) in millionths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to 0..=1e8 before the cast"
)]
fn millionths(share: f64) -> u64 {
    (share.clamp(0.0, 100.0) * 1e6).round() as u64
}

/// One simulated gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayConfig {
    /// Its name in logs and in the ready line.
    pub name: String,
    /// Where clients connect.
    pub vip: SocketAddr,
    /// Where its control plane listens.
    pub rest: SocketAddr,
    /// Its endpoints, in order: backends of this fleet by name, or addresses of others.
    pub endpoints: Vec<EndpointRef>,
    /// Where prompts are computed first, when the fleet is disaggregated; `endpoints` then decode.
    pub prefill: Vec<EndpointRef>,
    /// How it chooses.
    pub policy: PolicyConfig,
    /// Refresh period of its metrics; `None` refreshes at once.
    pub metrics_tick: Option<Duration>,
    /// Where its log is written besides the REST port, if anywhere.
    pub log_file: Option<PathBuf>,
    /// Whether connections outlive a request, and how long.
    pub keep_alive: Option<GatewayKeepAlive>,
    /// A fault that it commits on every response.
    pub fault: Option<GatewayFault>,
}

/// An endpoint of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointRef {
    /// A backend of this fleet.
    Backend(String),
    /// A server elsewhere.
    Address(SocketAddr),
}

/// A routing policy: table `[gateway.policy]`.
///
/// The name is a label and nothing more; what is done follows `algorithm`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyConfig {
    /// What the policy is called; the algorithm's name when absent.
    #[serde(default)]
    pub name: Option<String>,
    /// What is done.
    pub algorithm: Algorithm,
    /// Cache-aware: in-flight requests by which the best match may exceed the least loaded endpoint.
    #[serde(default = "default_balance_abs_threshold")]
    pub balance_abs_threshold: usize,
    /// Cache-aware: leading blocks that must match before a match counts.
    #[serde(default = "default_min_match_blocks")]
    pub min_match_blocks: usize,
    /// Cache-aware: blocks remembered per endpoint.
    #[serde(default = "default_index_blocks")]
    pub index_blocks: usize,
    /// Hash policies: what a request is known by.
    #[serde(default)]
    pub hash_key: HashKey,
    /// Hash policies by prefix: leading blocks of the prompt that make the key.
    #[serde(default = "default_hash_blocks")]
    pub hash_blocks: usize,
    /// Bounded-load hash: requests in flight that an endpoint may have, in hundredths of the mean.
    #[serde(default = "default_load_factor_percent")]
    pub load_factor_percent: u64,
    /// Bounded-load hash: whether the bound also holds for keys made of a prompt's prefix.
    #[serde(default)]
    pub bound_prefix_keys: bool,
    /// Cache-aware and hash by prefix: tokens per block; `[engine]`'s when absent.
    #[serde(default)]
    pub block_tokens: Option<u64>,
    /// Cache-aware and hash by prefix: bytes per token; `[engine]`'s when absent.
    #[serde(default)]
    pub bytes_per_token: Option<u64>,
    /// Claims `algorithm` in readback, metrics and log, but really routes round robin.
    #[serde(default)]
    pub silent_fallback: bool,
}

fn default_balance_abs_threshold() -> usize {
    3
}

fn default_min_match_blocks() -> usize {
    1
}

fn default_index_blocks() -> usize {
    4_096
}

fn default_hash_blocks() -> usize {
    1
}

/// LoxiLB's fixed bound: 175 % of the mean.
fn default_load_factor_percent() -> u64 {
    175
}

impl PolicyConfig {
    /// A policy with default constants, named after its algorithm.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Self {
        Self {
            name: None,
            algorithm,
            balance_abs_threshold: default_balance_abs_threshold(),
            min_match_blocks: default_min_match_blocks(),
            index_blocks: default_index_blocks(),
            hash_key: HashKey::default(),
            hash_blocks: default_hash_blocks(),
            load_factor_percent: default_load_factor_percent(),
            bound_prefix_keys: false,
            block_tokens: None,
            bytes_per_token: None,
            silent_fallback: false,
        }
    }

    /// The label.
    #[must_use]
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.algorithm.as_str())
    }

    /// How prompts become blocks, with the default engine's constants where none are set.
    #[must_use]
    pub fn tokenizer(&self) -> Tokenizer {
        let engine = EngineConfig::default();
        Tokenizer {
            bytes_per_token: self.bytes_per_token.unwrap_or(engine.bytes_per_token),
            block_tokens: self.block_tokens.unwrap_or(engine.block_tokens),
        }
    }
}

/// What a gateway does to choose an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// Every endpoint in turn.
    RoundRobin,
    /// The endpoint with the fewest requests in flight.
    LeastConnections,
    /// The endpoint whose place on a ring follows the hash of the request's key.
    ConsistentHash,
    /// The same, passing over endpoints with more than their share of the requests in flight.
    BoundedLoadHash,
    /// The endpoint that is predicted to hold the longest prefix, bounded by load.
    CacheAware,
}

/// What a hash policy knows a request by. What a request lacks is replaced by the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HashKey {
    /// The leading blocks of its prompt.
    #[default]
    Prefix,
    /// The conversation that its header fields name.
    Session,
    /// The client's address, without the port.
    Source,
}

impl Algorithm {
    /// Its name in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RoundRobin => "round_robin",
            Self::LeastConnections => "least_connections",
            Self::ConsistentHash => "consistent_hash",
            Self::BoundedLoadHash => "bounded_load_hash",
            Self::CacheAware => "cache_aware",
        }
    }
}

impl FleetConfig {
    /// A fleet of `n` equal backends `b0`, `b1`, ... on free loopback ports, without a gateway.
    #[must_use]
    pub fn loopback(n: usize, engine: &EngineConfig) -> Self {
        let backend = |i| BackendConfig {
            name: format!("b{i}"),
            listen: loopback_any(),
            engine: engine.clone(),
            keep_alive: KeepAliveLimits::default(),
            fault: None,
        };
        Self { request_log: None, backends: (0..n).map(backend).collect(), gateways: Vec::new() }
    }

    /// Adds a gateway in front of all backends on free loopback ports.
    #[must_use]
    pub fn with_gateway(mut self, name: &str, policy: PolicyConfig) -> Self {
        let endpoints =
            self.backends.iter().map(|b| EndpointRef::Backend(b.name.clone())).collect();
        self.gateways.push(GatewayConfig {
            name: name.to_owned(),
            vip: loopback_any(),
            rest: loopback_any(),
            endpoints,
            prefill: Vec::new(),
            policy,
            metrics_tick: None,
            log_file: None,
            keep_alive: None,
            fault: None,
        });
        self
    }
}

/// Any free port of the loopback interface.
fn loopback_any() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}
