//! Connections that carry several requests: backends, and gateways on both sides.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod support;

use std::net::SocketAddr;
use std::num::NonZeroU64;

use protocol::http1::Framing;
use simfleet::{
    Algorithm, BackendFault, Fleet, FleetConfig, FleetHandle, GatewayKeepAlive, KeepAliveLimits,
    PolicyConfig, Upstream,
};
use support::{Line, call, chat, fast_engine, page, series};
use tokio::io::AsyncWriteExt;

fn kept(upstream: Upstream) -> GatewayKeepAlive {
    GatewayKeepAlive { upstream, max_requests: None, idle_timeout_ms: None }
}

async fn fleet(backends: usize, keep_alive: Option<GatewayKeepAlive>) -> FleetHandle {
    let mut config = FleetConfig::loopback(backends, &fast_engine())
        .with_gateway("g", PolicyConfig::new(Algorithm::RoundRobin));
    config.gateways[0].keep_alive = keep_alive;
    Fleet::start(config).await.unwrap()
}

/// Requests finished at each backend.
fn finished(fleet: &FleetHandle) -> Vec<u64> {
    let names = fleet.ready().backends.iter().map(|b| b.name.as_str());
    names.map(|name| fleet.stats(name).unwrap().finished).collect()
}

async fn connections(fleet: &FleetHandle) -> u64 {
    let metrics = page(fleet.gateway(0).unwrap().rest, "/netlox/v1/metrics").await;
    series(&metrics, "loxilb_backend_traffic_connections_total")
}

fn vip(fleet: &FleetHandle) -> SocketAddr {
    fleet.gateway(0).unwrap().vip
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_connection_keeps_its_backend_and_its_connection_there() {
    let fleet = fleet(3, Some(kept(Upstream::Pinned))).await;
    let mut line = Line::connect(vip(&fleet)).await;
    for n in 0..6 {
        let reply = line.ask(&chat("sim-model", "x", 3, n)).await;
        assert_eq!((reply.framing, reply.token_events), (Framing::Valid, 3));
        assert!(reply.head.unwrap().keep_alive);
    }
    assert_eq!(finished(&fleet), [6, 0, 0]);
    assert_eq!(connections(&fleet).await, 1);
    let mut other = Line::connect(vip(&fleet)).await;
    other.ask(&chat("sim-model", "x", 3, 7)).await;
    assert_eq!(finished(&fleet), [6, 1, 0], "the policy is asked once per connection");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_lets_the_policy_choose_for_every_request_and_reuses_connections_of_others() {
    let fleet = fleet(3, Some(kept(Upstream::Pooled))).await;
    for _ in 0..2 {
        let mut line = Line::connect(vip(&fleet)).await;
        for n in 0..6 {
            assert_eq!(line.ask(&chat("sim-model", "x", 3, n)).await.token_events, 3);
        }
    }
    assert_eq!(finished(&fleet), [4, 4, 4]);
    assert_eq!(connections(&fleet).await, 3, "the second client used the first one's");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_table_every_connection_ends_with_its_answer() {
    let fleet = fleet(2, None).await;
    let mut line = Line::connect(vip(&fleet)).await;
    let reply = line.ask(&chat("sim-model", "x", 3, 0)).await;
    assert!(!reply.head.unwrap().keep_alive);
    assert!(line.ended().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_close_is_carried_out_on_both_sides() {
    for upstream in [Upstream::Pinned, Upstream::Pooled] {
        let fleet = fleet(1, Some(kept(upstream))).await;
        let mut line = Line::connect(vip(&fleet)).await;
        line.ask(&chat("sim-model", "x", 3, 0)).await;
        let request = String::from_utf8(chat("sim-model", "x", 3, 1)).unwrap();
        let last = request.replacen("host: sim", "host: sim\r\nconnection: close", 1);
        let reply = line.ask(last.as_bytes()).await;
        assert_eq!((reply.framing, reply.token_events), (Framing::Valid, 3));
        assert!(!reply.head.unwrap().keep_alive);
        assert!(line.ended().await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_request_of_a_connection_says_so() {
    let mut config = FleetConfig::loopback(1, &fast_engine())
        .with_gateway("g", PolicyConfig::new(Algorithm::RoundRobin));
    let most = NonZeroU64::new(3);
    config.backends[0].keep_alive = KeepAliveLimits { max_requests: most, idle_timeout_ms: None };
    let at_backend = Fleet::start(config.clone()).await.unwrap();
    config.backends[0].keep_alive = KeepAliveLimits::default();
    config.gateways[0].keep_alive =
        Some(GatewayKeepAlive { max_requests: most, ..kept(Upstream::Pinned) });
    let at_gateway = Fleet::start(config).await.unwrap();
    for addr in [at_backend.backend(0).unwrap().addr, vip(&at_gateway)] {
        let mut line = Line::connect(addr).await;
        for n in 1..=3 {
            let reply = line.ask(&chat("sim-model", "x", 2, n)).await;
            assert_eq!((reply.framing, reply.token_events), (Framing::Valid, 2));
            assert_eq!(reply.head.unwrap().keep_alive, n < 3, "request {n}");
        }
        assert!(line.ended().await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_is_closed_and_never_one_that_is_being_answered() {
    let limits = KeepAliveLimits { max_requests: None, idle_timeout_ms: Some(50) };
    let mut config = FleetConfig::loopback(1, &simfleet::EngineConfig::default())
        .with_gateway("g", PolicyConfig::new(Algorithm::RoundRobin));
    config.backends[0].keep_alive = limits;
    config.gateways[0].keep_alive =
        Some(GatewayKeepAlive { idle_timeout_ms: Some(50), ..kept(Upstream::Pinned) });
    let fleet = Fleet::start(config).await.unwrap();
    for addr in [fleet.backend(0).unwrap().addr, vip(&fleet)] {
        let mut line = Line::connect(addr).await;
        // 20 tokens of 10 ms each: four times the idle timeout.
        let reply = line.ask(&chat("sim-model", "x", 20, 0)).await;
        assert_eq!((reply.framing, reply.token_events), (Framing::Valid, 20));
        assert!(line.ended().await, "closed by the server while idle");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_closed_meanwhile_costs_no_request_unless_it_races_with_one() {
    for upstream in [Upstream::Pinned, Upstream::Pooled] {
        let fleet = fleet(1, Some(kept(upstream))).await;
        let mut line = Line::connect(vip(&fleet)).await;
        line.ask(&chat("sim-model", "x", 2, 0)).await;
        // Closes at the request itself: to the gateway that is an answer that never began.
        fleet.set_backend_fault("b0", Some(BackendFault::CloseReused));
        let reply = line.ask(&chat("sim-model", "x", 2, 1)).await;
        assert_eq!(reply.status(), Some(502), "{upstream:?}");
        assert!(line.ended().await);
        assert_eq!(call(vip(&fleet), &chat("sim-model", "x", 2, 2)).await.record.token_events, 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_sent_ahead_are_answered_in_order() {
    for upstream in [Upstream::Pinned, Upstream::Pooled] {
        let fleet = fleet(2, Some(kept(upstream))).await;
        for addr in [vip(&fleet), fleet.backend(0).unwrap().addr] {
            let mut line = Line::connect(addr).await;
            let both = [chat("sim-model", "x", 3, 8), chat("sim-model", "x", 5, 9)].concat();
            line.stream.write_all(&both).await.unwrap();
            for (n, tokens) in [(8, 3), (9, 5)] {
                let reply = line.answer().await;
                assert_eq!((reply.framing, reply.token_events), (Framing::Valid, tokens));
                assert!(reply.response_id.unwrap().ends_with(&format!("{n:032x}")));
            }
        }
    }
}
