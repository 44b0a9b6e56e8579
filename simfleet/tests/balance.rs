//! The hash policies and least connections against models of their own, in which nothing of the crate's
//! ring or bookkeeping is used.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;
use sha2::{Digest, Sha256};
use simfleet::blocks::{BlockHash, Tokenizer};
use simfleet::policy::{EndpointLoad, Lookup, Policy, Prompt, RequestView, build};
use simfleet::{Algorithm, HashKey, PolicyConfig};

const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

fn config(algorithm: Algorithm, hash_key: HashKey) -> PolicyConfig {
    PolicyConfig { hash_key, ..PolicyConfig::new(algorithm) }
}

fn by_session(session: &str) -> RequestView<'_> {
    RequestView { prompt: Prompt::None, session: Some(session), source: SOURCE }
}

fn idle(n: usize) -> Vec<EndpointLoad> {
    vec![EndpointLoad { in_flight: 0, usable: true }; n]
}

fn place(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(Sha256::digest(bytes)[..8].try_into().unwrap())
}

/// Every endpoint by its shortest way clockwise from the key to one of its 256 places.
fn by_distance(key: &[u8], endpoints: usize) -> Vec<usize> {
    let key = place(key);
    let nearest = |e: usize| {
        let way = |p: usize| place(format!("{e}/{p}").as_bytes()).wrapping_sub(key);
        (0..256).map(way).min().unwrap()
    };
    let mut ways: Vec<_> = (0..endpoints).map(|e| (nearest(e), e)).collect();
    ways.sort_unstable();
    ways.into_iter().map(|(_, e)| e).collect()
}

fn choose(policy: &mut dyn Policy, request: RequestView<'_>, loads: &[EndpointLoad]) -> usize {
    let choice = policy.choose(request, loads).unwrap();
    assert_eq!(choice.lookup, Lookup::NotAsked);
    choice.endpoint
}

/// Computed with Python's hashlib from the definition in docs/simulator.md.
#[test]
fn keys_lie_where_the_definition_puts_them() {
    let mut by_name = build(&config(Algorithm::ConsistentHash, HashKey::Session), 4);
    let sessions: Vec<_> = (0..8)
        .map(|i| choose(by_name.as_mut(), by_session(&format!("session-{i}")), &idle(4)))
        .collect();
    assert_eq!(sessions, [3, 2, 2, 1, 3, 1, 1, 1]);
    let mut by_source = build(&config(Algorithm::ConsistentHash, HashKey::Source), 4);
    let sources: Vec<_> = (0..4)
        .map(|i| {
            let source = IpAddr::V4(Ipv4Addr::new(10, 0, 0, i));
            let request = RequestView { source, ..by_session("session-0") };
            choose(by_source.as_mut(), request, &idle(4))
        })
        .collect();
    assert_eq!(sources, [0, 1, 3, 0], "the session plays no part");
}

#[test]
fn only_the_keys_of_an_endpoint_that_leaves_move_and_they_come_back_with_it() {
    let mut policy = build(&config(Algorithm::ConsistentHash, HashKey::Session), 4);
    let keys: Vec<_> = (0..2_000).map(|i| format!("key {i}")).collect();
    let mut route = |loads: &[EndpointLoad]| -> Vec<usize> {
        keys.iter().map(|key| choose(policy.as_mut(), by_session(key), loads)).collect()
    };
    let whole = route(&idle(4));
    for gone in 0..4 {
        let mut loads = idle(4);
        loads[gone].usable = false;
        let less = route(&loads);
        let moved = whole.iter().zip(&less).filter(|(before, after)| before != after).count();
        assert!(whole.iter().zip(&less).all(|(b, a)| if *b == gone { *a != gone } else { a == b }));
        assert_eq!(moved, whole.iter().filter(|e| **e == gone).count());
        // 256 places each: a share of a quarter varies by about 1/16 of itself.
        assert!((300..700).contains(&moved), "endpoint {gone} held {moved} of 2000 keys");
        let heirs: std::collections::BTreeSet<_> =
            whole.iter().zip(&less).filter(|(b, _)| **b == gone).map(|(_, a)| *a).collect();
        assert_eq!(heirs.len(), 3, "its keys go to all the others, not to one");
    }
    assert_eq!(route(&idle(4)), whole);
}

fn loads() -> impl Strategy<Value = Vec<EndpointLoad>> {
    let load = (0..9_usize, prop::bool::weighted(0.8))
        .prop_map(|(in_flight, usable)| EndpointLoad { in_flight, usable });
    prop::collection::vec(load, 1..7)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_ring_is_the_shortest_way_clockwise(key in "[a-z]{1,6}", loads in loads(), percent in 100..400_u64) {
        for algorithm in [Algorithm::ConsistentHash, Algorithm::BoundedLoadHash] {
            let config =
                PolicyConfig { load_factor_percent: percent, ..config(algorithm, HashKey::Session) };
            let got = build(&config, loads.len()).choose(by_session(&key), &loads);
            let usable: Vec<_> = loads.iter().filter(|l| l.usable).collect();
            let all = usable.iter().map(|l| l.in_flight).sum::<usize>() as f64;
            let share = percent as f64 / 100.0 * (all + 1.0) / usable.len() as f64;
            let bounded = algorithm == Algorithm::BoundedLoadHash;
            let fits = |e: &usize| {
                let l = loads[*e];
                // Half a request of slack: the share is a multiple of 1/600.
                l.usable && (!bounded || (l.in_flight as f64) < share.ceil() - 0.0005
                    && l.in_flight as f64 + 1.0 <= (share - 1e-9).ceil())
            };
            let expected = by_distance(key.as_bytes(), loads.len()).into_iter().find(fits);
            prop_assert_eq!(got.map(|c| c.endpoint), expected);
            prop_assert_eq!(got.is_some(), !usable.is_empty(), "somebody always has room");
        }
    }

    #[test]
    fn least_connections_is_the_least_loaded_and_of_equals_the_next_in_turn(
        events in prop::collection::vec((any::<bool>(), 0..5_usize, prop::bool::weighted(0.1)), 1..80),
    ) {
        let mut policy = build(&PolicyConfig::new(Algorithm::LeastConnections), 5);
        let mut in_flight: BTreeMap<usize, usize> = (0..5).map(|e| (e, 0)).collect();
        let (mut down, mut last) = (5, None);
        for (ends, which, toggles) in events {
            if toggles {
                down = which;
            }
            if ends {
                let load = in_flight.get_mut(&which).unwrap();
                *load = load.saturating_sub(1);
                continue;
            }
            let view: Vec<_> = in_flight
                .iter()
                .map(|(e, n)| EndpointLoad { in_flight: *n, usable: *e != down })
                .collect();
            let got = policy.choose(Prompt::None.into(), &view).unwrap().endpoint;
            let least = in_flight.iter().filter(|(e, _)| **e != down).map(|(_, n)| *n).min().unwrap();
            let equals: Vec<_> =
                in_flight.iter().filter(|(e, n)| **e != down && **n == least).map(|(e, _)| *e).collect();
            let behind = equals.iter().find(|e| last.is_some_and(|last| **e > last));
            let expected = *behind.unwrap_or(&equals[0]);
            prop_assert_eq!(got, expected);
            *in_flight.get_mut(&got).unwrap() += 1;
            last = Some(got);
        }
    }
}

/// Places `n` requests of one key that never end; how many each of four endpoints has.
fn pile_up(config: &PolicyConfig, request: RequestView<'_>, n: usize) -> Vec<usize> {
    let mut policy = build(config, 4);
    let mut loads = idle(4);
    for placed in 1..=n {
        let endpoint = choose(policy.as_mut(), request, &loads);
        loads[endpoint].in_flight += 1;
        let most = loads.iter().map(|l| l.in_flight).max().unwrap();
        if config.algorithm == Algorithm::BoundedLoadHash && config.bound_prefix_keys {
            assert!(most <= (175 * placed).div_ceil(400), "{most} of {placed} on one endpoint");
        }
    }
    loads.iter().map(|l| l.in_flight).collect()
}

fn hot() -> Vec<BlockHash> {
    Tokenizer { bytes_per_token: 1, block_tokens: 4 }.blocks(b"the same prompt")
}

#[test]
fn the_bound_spreads_a_hot_key_and_as_in_loxilb_not_one_of_a_prompts_prefix() {
    let blocks = hot();
    let prefix = RequestView::from(Prompt::Blocks(&blocks));
    let plain = config(Algorithm::BoundedLoadHash, HashKey::Prefix);
    let bounded = PolicyConfig { bound_prefix_keys: true, ..plain.clone() };
    let sorted = |mut counts: Vec<usize>| {
        counts.sort_unstable();
        counts
    };
    assert_eq!(sorted(pile_up(&plain, prefix, 100)), [0, 0, 0, 100]);
    assert_eq!(sorted(pile_up(&bounded, prefix, 100)), [0, 12, 44, 44]);
    assert_eq!(sorted(pile_up(&plain, by_session("hot"), 100)), [0, 12, 44, 44]);
    let unbounded = config(Algorithm::ConsistentHash, HashKey::Session);
    assert_eq!(sorted(pile_up(&unbounded, by_session("hot"), 100)), [0, 0, 0, 100]);
}

#[test]
fn a_prefix_key_takes_the_leading_blocks_only_and_what_is_missing_is_replaced() {
    let tokens = Tokenizer { bytes_per_token: 1, block_tokens: 4 };
    let of = |text: &str| tokens.blocks(text.as_bytes());
    let route = |blocks: usize, text: &str, session: &str| {
        let config = PolicyConfig {
            hash_blocks: blocks,
            ..config(Algorithm::ConsistentHash, HashKey::Prefix)
        };
        let prompt = of(text);
        let request = RequestView { prompt: Prompt::Blocks(&prompt), ..by_session(session) };
        choose(build(&config, 64).as_mut(), request, &idle(64))
    };
    assert_eq!(route(1, "aaaabbbb", "x"), route(1, "aaaacccc", "y"));
    assert_ne!(route(2, "aaaabbbb", "x"), route(2, "aaaacccc", "x"));
    assert_eq!(route(2, "aaaab", "x"), route(1, "aaaab", "x"), "fewer blocks than asked for");
    assert_ne!(route(1, "aaa", "x"), route(1, "aaa", "y"), "no full block: the session");
    assert_eq!(route(1, "aaa", "x"), route(1, "bbb", "x"));
    let no_session = RequestView { session: None, ..by_session("") };
    let config = config(Algorithm::ConsistentHash, HashKey::Prefix);
    let by_source = choose(build(&config, 4).as_mut(), no_session, &idle(4));
    assert_eq!(by_source, by_distance(b"10.0.0.1", 4)[0]);
}
