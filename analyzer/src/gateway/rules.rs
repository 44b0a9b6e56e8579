//! `GET /config/loadbalancer/all`, in LoxiLB's shape.

use std::net::SocketAddr;

use serde_json::Value;

use crate::rundir::Readback;

/// The rule of `vip` among all rules.
#[must_use]
pub fn readback(rules: &Value, vip: SocketAddr) -> Readback {
    let all = rules.get("lbAttr").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let Some(rule) = all.iter().find(|rule| is_of(rule, vip)) else {
        let problem = format!("no rule for {vip} among {}", all.len());
        return Readback { problems: vec![problem], ..Readback::default() };
    };
    let number = |key: &str| rule["serviceArguments"].get(key).and_then(Value::as_i64);
    let endpoints = rule.get("endpoints").and_then(Value::as_array);
    Readback {
        found: true,
        sel: number("sel"),
        mode: number("mode"),
        kv_exact_mode: number("kvExactMode"),
        endpoints: endpoints.into_iter().flatten().filter_map(endpoint).collect(),
        ..Readback::default()
    }
}

fn is_of(rule: &Value, vip: SocketAddr) -> bool {
    let service = &rule["serviceArguments"];
    let address = service["externalIP"].as_str().and_then(|ip| ip.parse().ok());
    address == Some(vip.ip()) && service["port"].as_u64() == Some(u64::from(vip.port()))
}

fn endpoint(endpoint: &Value) -> Option<String> {
    let (ip, port) = (endpoint["endpointIP"].as_str()?, endpoint["targetPort"].as_u64()?);
    Some(format!("{ip}:{port}"))
}
