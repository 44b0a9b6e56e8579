//! Policies over the demo trace in model time: no socket, no clock, so the figures are exact.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod support;

use protocol::Nanos;
use simfleet::blocks::Tokenizer;
use simfleet::model::{Arrival, EngineModel, ModelParams};
use simfleet::policy::{EndpointLoad, Prompt, build};
use simfleet::{Algorithm, EngineConfig, PolicyConfig};
use support::demo_trace;

/// Hit share of all prompt tokens when the trace is sent to four backends, `gap_ns` apart, and the
/// largest backend's share of the requests.
fn run(config: &PolicyConfig, backends: usize, gap_ns: u64) -> (f64, f64) {
    let tokenizer = Tokenizer { bytes_per_token: 4, block_tokens: 64 };
    let params = ModelParams { cache_blocks: 100_000, ..EngineConfig::default().params() };
    let mut models: Vec<_> = (0..backends).map(|_| EngineModel::new(params)).collect();
    let mut policy = build(config, backends);
    let mut counts = vec![0_u32; backends];
    let mut out = Vec::new();
    for (i, row) in (0_u64..).zip(demo_trace()) {
        let now = Nanos::new(i * gap_ns);
        models.iter_mut().for_each(|m| m.advance(now, &mut out));
        let loads: Vec<_> = models
            .iter()
            .map(|m| m.stats())
            .map(|s| EndpointLoad { in_flight: s.running + s.waiting, usable: true })
            .collect();
        let blocks = tokenizer.blocks(row.prompt().as_bytes());
        let chosen = policy.choose(Prompt::Blocks(&blocks).into(), &loads).unwrap().endpoint;
        counts[chosen] += 1;
        let arrival = Arrival { prompt_tokens: row.tokens, blocks, output_tokens: row.output };
        models[chosen].arrive(now, arrival, &mut out);
    }
    models.iter_mut().for_each(|m| m.advance(Nanos::new(u64::MAX), &mut out));
    let sum = |f: fn(&EngineModel) -> u64| models.iter().map(f).sum::<u64>() as f64;
    let share = sum(|m| m.stats().hit_tokens) / sum(|m| m.stats().queried_tokens);
    (share, f64::from(*counts.iter().max().unwrap()) / f64::from(counts.iter().sum::<u32>()))
}

#[test]
fn the_demo_trace_gives_its_known_hit_shares() {
    let round_robin = PolicyConfig::new(Algorithm::RoundRobin);
    let (ideal, _) = run(&round_robin, 1, 0);
    let (turns, largest) = run(&round_robin, 4, 0);
    assert!((0.45..0.48).contains(&ideal), "one unlimited cache: {ideal:.3}");
    assert!((0.13..0.16).contains(&turns), "four caches in turn: {turns:.3}");
    assert!((largest - 0.25).abs() < 1e-9);
}

#[test]
fn cache_aware_beats_round_robin_under_load_without_piling_up() {
    for gap_ms in [10, 20, 40, 80, 160] {
        let gap = gap_ms * 1_000_000;
        let (turns, _) = run(&PolicyConfig::new(Algorithm::RoundRobin), 4, gap);
        for min_match_blocks in [1, 2] {
            let config =
                PolicyConfig { min_match_blocks, ..PolicyConfig::new(Algorithm::CacheAware) };
            let (aware, largest) = run(&config, 4, gap);
            println!(
                "{gap_ms} ms apart, {min_match_blocks} blocks: {aware:.3} of {turns:.3}, largest {largest:.2}"
            );
        }
        let (aware, largest) = run(&PolicyConfig::new(Algorithm::CacheAware), 4, gap);
        assert!(aware > 1.5 * turns, "{gap_ms} ms apart: {aware:.3} against {turns:.3}");
        assert!(largest < 0.5, "{gap_ms} ms apart: {largest:.2} of all requests on one backend");
    }
}
