//! LoxiLB's rules as endpoints (LoxiLB REST API, `GET /netlox/v1/config/loadbalancer/all`).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use agent_ebpf::endpoint::MAX_ENDPOINTS;
use serde::Deserialize;

use crate::capture::tcx::canonical;
use crate::endpoint::{Endpoint, Role};

/// What a reading found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// VIPs and backends, sorted by address.
    pub endpoints: Vec<Endpoint>,
    /// Services and endpoints that can't be watched: other protocols than TCP, no single address or port.
    pub ignored: usize,
}

/// An answer without rules.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// Not what LoxiLB answers.
    #[error(
        "no load balancer rules in the answer ({0}); check that discovery.loxilb_url is LoxiLB's API"
    )]
    Malformed(serde_json::Error),
    /// More than can be watched.
    #[error(
        "{0} endpoints were found, and {MAX_ENDPOINTS} can be watched; name them in the configuration"
    )]
    TooMany(usize),
}

/// A field of another type is a field that says nothing, as a missing one.
#[derive(Deserialize)]
struct Rules {
    #[serde(rename = "lbAttr")]
    rules: Option<Vec<Rule>>,
}

#[derive(Deserialize)]
struct Rule {
    #[serde(rename = "serviceArguments", default)]
    service: Service,
    #[serde(default)]
    endpoints: Option<Vec<Target>>,
}

#[derive(Default, Deserialize)]
struct Service {
    #[serde(rename = "externalIP", default)]
    ip: String,
    #[serde(default)]
    port: u32,
    #[serde(default)]
    protocol: String,
}

#[derive(Deserialize)]
struct Target {
    #[serde(rename = "endpointIP", default)]
    ip: String,
    #[serde(rename = "targetPort", default)]
    port: u32,
    #[serde(default)]
    ep_role: u32,
}

/// Endpoints of the rules in `body`.
///
/// # Errors
/// [`RulesError`].
pub fn parse(body: &[u8]) -> Result<Found, RulesError> {
    let rules: Rules = serde_json::from_slice(body).map_err(RulesError::Malformed)?;
    let mut roles = BTreeMap::new();
    let mut ignored = 0;
    for rule in rules.rules.unwrap_or_default() {
        let targets = rule.endpoints.unwrap_or_default();
        if !rule.service.protocol.eq_ignore_ascii_case("tcp") {
            ignored += 1 + targets.len();
            continue;
        }
        let vip = address(&rule.service.ip, rule.service.port).map(|it| (it, Role::Vip));
        let backends = targets.iter().map(|it| Some((address(&it.ip, it.port)?, role(it.ep_role))));
        for found in std::iter::once(vip).chain(backends) {
            match found {
                Some((address, role)) => note(&mut roles, address, role),
                None => ignored += 1,
            }
        }
    }
    let most = usize::try_from(MAX_ENDPOINTS).unwrap_or(usize::MAX);
    if roles.len() > most {
        return Err(RulesError::TooMany(roles.len()));
    }
    let endpoints = roles.into_iter().map(|(address, role)| Endpoint { address, role }).collect();
    Ok(Found { endpoints, ignored })
}

/// Several rules may share an address: a service in front of services stays a VIP, and a phase says more
/// than none.
fn note(roles: &mut BTreeMap<SocketAddr, Role>, address: SocketAddr, role: Role) {
    let rank = |role| match role {
        Role::Vip => 2,
        Role::Prefill | Role::Decode => 1,
        Role::Backend => 0,
    };
    let known = roles.entry(address).or_insert(role);
    if rank(role) > rank(*known) {
        *known = role;
    }
}

/// `ep_role`: 1 is prefill, 2 is decode (LoxiLB, prefill/decode disaggregation).
fn role(ep_role: u32) -> Role {
    match ep_role {
        1 => Role::Prefill,
        2 => Role::Decode,
        _ => Role::Backend,
    }
}

fn address(ip: &str, port: u32) -> Option<SocketAddr> {
    let ip: IpAddr = ip.parse().ok()?;
    let port = u16::try_from(port).ok().filter(|port| *port > 0)?;
    (!ip.is_unspecified()).then(|| canonical(SocketAddr::new(ip, port)))
}
