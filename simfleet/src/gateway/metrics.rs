//! The gateway's counters in Prometheus' text form, under LoxiLB's names.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::Ordering;

use super::Gateway;
use crate::config::Algorithm;

/// Series of one metric: labels in braces (or nothing) and value, in order.
type Series = Vec<(String, u64)>;

/// The whole page as of now.
pub(super) fn render(gateway: &Gateway) -> String {
    let mut text = String::from("# simfleet: simulated gateway, not LoxiLB\n");
    for (name, kind, series) in metrics(gateway) {
        if !series.is_empty() {
            let _ = writeln!(text, "# TYPE {name} {kind}");
        }
        for (labels, value) in series {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    }
    text
}

fn metrics(gateway: &Gateway) -> Vec<(&'static str, &'static str, Series)> {
    let totals = gateway.counters.snapshot();
    let hit = |(ep, n): (&usize, &u64)| (format!("{{ep_idx=\"{ep}\"}}"), *n);
    vec![
        ("loxilb_ai_requests_total", "counter", once_used(totals.ai_requests)),
        ("loxilb_backend_traffic_connections_total", "counter", connections(gateway)),
        ("loxilb_pd_ep_info", "gauge", endpoint_info(gateway)),
        ("loxilb_pd_kv_blocks", "gauge", index_blocks(gateway)),
        ("loxilb_pd_kv_tier15_fallthrough_total", "counter", once_used(totals.fallthrough)),
        ("loxilb_pd_kv_tier15_hits_total", "counter", totals.hits.iter().map(hit).collect()),
        (
            "loxilb_pd_kv_tier15_miss_reason_total",
            "counter",
            labelled("reason", &totals.miss_reasons),
        ),
        (
            "loxilb_proxy_active_connections",
            "gauge",
            vec![(String::new(), totals.active_connections)],
        ),
        (
            "loxilb_proxy_http_responses_by_status_total",
            "counter",
            labelled("status_class", &totals.responses),
        ),
    ]
}

fn once_used(value: u64) -> Series {
    if value == 0 { Vec::new() } else { vec![(String::new(), value)] }
}

fn labelled<K: std::fmt::Display>(label: &str, values: &BTreeMap<K, u64>) -> Series {
    values.iter().map(|(key, n)| (format!("{{{label}=\"{key}\"}}"), *n)).collect()
}

fn connections(gateway: &Gateway) -> Series {
    let service = gateway.vip;
    let (router, prefill) = (gateway.router(), gateway.prefill());
    let pool = prefill.iter().flat_map(|pool| &pool.endpoints);
    let series = router.endpoints.iter().chain(pool).map(|e| {
        let labels = format!("{{service=\"{service}\",endpoint=\"{}\"}}", e.addr);
        (labels, e.connections.load(Ordering::Relaxed))
    });
    series.filter(|(_, n)| *n > 0).collect()
}

/// Which index is which address; only where prefix routing is claimed.
fn endpoint_info(gateway: &Gateway) -> Series {
    if gateway.config.policy.algorithm != Algorithm::CacheAware {
        return Vec::new();
    }
    let service = gateway.vip;
    let info = |(i, addr)| (format!("{{service=\"{service}\",ep_idx=\"{i}\",ep=\"{addr}\"}}"), 1);
    gateway.router().endpoints.iter().map(|e| e.addr).enumerate().map(info).collect()
}

fn index_blocks(gateway: &Gateway) -> Series {
    let service = gateway.vip;
    let held = gateway.router().index_blocks().into_iter().enumerate().filter(|(_, n)| *n > 0);
    held.map(|(i, n)| (format!("{{service=\"{service}\",ep_idx=\"{i}\"}}"), n as u64)).collect()
}
