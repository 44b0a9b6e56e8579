//! The engine model against an independent simulation, and its cache against an independent LRU.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod support;

use std::collections::BTreeMap;

use proptest::prelude::*;
use protocol::Nanos;
use simfleet::blocks::Tokenizer;
use simfleet::model::{Arrival, EngineModel, ModelParams, Output, OutputKind, RequestId};
use support::{NaiveLru, demo_trace};

const PARAMS: ModelParams = ModelParams {
    prefill_tokens_per_s: 1_000,
    decode_interval_ns: 7_000_000,
    slowdown_ppm: 0,
    slots: 2,
    block_tokens: 64,
    cache_blocks: 50,
};

/// One request of the property test: gap to the one before, prompt tokens, output tokens.
type Job = (u64, u64, u64);

fn jobs() -> impl Strategy<Value = Vec<Job>> {
    prop::collection::vec((0..200_000_000_u64, 0..400_u64, 1..12_u64), 1..40)
}

fn arrival(prompt_tokens: u64, output_tokens: u64) -> Arrival {
    Arrival { prompt_tokens, blocks: Vec::new(), output_tokens }
}

/// First and last token of every request by recurrence: a FIFO queue before one prefill server and
/// `slots` places, each free again when its request's last token is out.
fn by_recurrence(jobs: &[Job], slots: usize) -> Vec<(u64, u64)> {
    let mut places = vec![0_u64; slots];
    let (mut now, mut prefill_free) = (0, 0);
    let mut times = Vec::new();
    for (gap, prompt, output) in jobs {
        now += gap;
        places.sort_unstable();
        let start = now.max(prefill_free).max(places[0]);
        let first = start + prompt * 1_000_000;
        let last = first + (output - 1) * PARAMS.decode_interval_ns;
        (prefill_free, places[0]) = (first, last);
        times.push((first, last));
    }
    times
}

/// The same from the model, asked at every arrival and then once far in the future.
fn by_model(jobs: &[Job], slots: usize, polls: &[u64]) -> Vec<(u64, u64)> {
    let mut model = EngineModel::new(ModelParams { slots, ..PARAMS });
    let (mut out, mut ids, mut now) = (Vec::new(), Vec::new(), 0);
    for (i, (gap, prompt, output)) in jobs.iter().enumerate() {
        let poll = now + polls.get(i).copied().unwrap_or(0).min(*gap);
        model.advance(Nanos::new(poll), &mut out);
        now += gap;
        ids.push(model.arrive(Nanos::new(now), arrival(*prompt, *output), &mut out));
    }
    model.advance(Nanos::new(u64::MAX), &mut out);
    assert!(out.windows(2).all(|w| w[0].at <= w[1].at), "outputs are in model order");
    let tokens = token_times(&out);
    ids.iter().map(|id| (tokens[id][0], *tokens[id].last().unwrap())).collect()
}

fn token_times(out: &[Output]) -> BTreeMap<RequestId, Vec<u64>> {
    let mut times = BTreeMap::<_, Vec<_>>::new();
    for o in out.iter().filter(|o| matches!(o.kind, OutputKind::Token { .. })) {
        times.entry(o.id).or_default().push(o.at.get());
    }
    times
}

proptest! {
    #[test]
    fn token_instants_equal_the_recurrence(jobs in jobs(), slots in 1..5_usize,
                                           polls in prop::collection::vec(0..200_000_000_u64, 0..40)) {
        prop_assert_eq!(by_model(&jobs, slots, &polls), by_recurrence(&jobs, slots));
    }

    #[test]
    fn cancelling_at_any_time_frees_the_place_and_never_loses_another_request(
        jobs in jobs(), cancelled in prop::collection::vec(any::<bool>(), 40), late in 0..90_000_000_u64,
    ) {
        let mut model = EngineModel::new(PARAMS);
        let (mut out, mut now, mut kept) = (Vec::new(), 0, 0);
        for ((gap, prompt, output), cancel) in jobs.iter().zip(&cancelled) {
            now += gap;
            let id = model.arrive(Nanos::new(now), arrival(*prompt, *output), &mut out);
            if *cancel {
                now += late;
                model.cancel(Nanos::new(now), id, &mut out);
            } else {
                kept += 1;
            }
        }
        model.advance(Nanos::new(u64::MAX), &mut out);
        let stats = model.stats();
        prop_assert_eq!((stats.running, stats.waiting), (0, 0));
        prop_assert_eq!(stats.finished + stats.cancelled, jobs.len() as u64);
        prop_assert!(stats.finished >= kept);
    }
}

#[test]
fn other_decoding_requests_stretch_the_interval() {
    let params = ModelParams { slowdown_ppm: 500_000, prefill_tokens_per_s: u64::MAX, ..PARAMS };
    let mut model = EngineModel::new(params);
    let mut out = Vec::new();
    let a = model.arrive(Nanos::new(0), arrival(0, 3), &mut out);
    let b = model.arrive(Nanos::new(1), arrival(0, 2), &mut out);
    model.advance(Nanos::new(u64::MAX), &mut out);
    let times = token_times(&out);
    // a decodes alone at 0, beside b at 7 ms: half as long again; b finds a at its first token.
    assert_eq!(times[&a], [0, 7_000_000, 17_500_000]);
    assert_eq!(times[&b], [1, 10_500_001]);
}

#[test]
fn hits_equal_an_independent_lru_over_the_demo_trace_whatever_the_timing() {
    let tokenizer = Tokenizer { bytes_per_token: 4, block_tokens: 64 };
    for (cache_blocks, gap_ns) in [(300, 0), (300, 5_000_000_000), (2_000, 1_000), (100_000, 0)] {
        let mut model = EngineModel::new(ModelParams { cache_blocks, ..PARAMS });
        let mut lru = NaiveLru { capacity: cache_blocks, list: Vec::new() };
        let (mut out, mut expected, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        for (i, row) in (0_u64..).zip(demo_trace()) {
            let blocks = tokenizer.blocks(row.prompt().as_bytes());
            let arrival = Arrival { prompt_tokens: row.tokens, blocks, output_tokens: row.output };
            ids.push(model.arrive(Nanos::new(i * gap_ns), arrival, &mut out));
            expected.push(lru.serve(row.full_blocks()));
        }
        model.advance(Nanos::new(u64::MAX), &mut out);
        let hits: BTreeMap<_, _> = out
            .iter()
            .filter_map(|o| match o.kind {
                OutputKind::Started(start) => Some((o.id, start.hit_tokens)),
                OutputKind::Token { .. } => None,
            })
            .collect();
        let got: Vec<_> = ids.iter().map(|id| hits[id]).collect();
        assert_eq!(got, expected, "{cache_blocks} blocks, {gap_ns} ns apart");
        assert!(got.iter().sum::<u64>() > 0);
    }
}
