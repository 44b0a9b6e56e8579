//! Rows of several agents as one fleet: which backend got which request, in which order.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::folder::{AgentRows, Recording};
use super::rows::{PREFIX_SIZES, PrefixRow, PromptEnd, RequestRow, Role};

/// Rows of this class were refused or failed by whoever answered.
const HTTP_STATUS: &str = "http_status";

/// A connection: the agent that saw it, and its number there.
pub(super) type ConnectionKey = (usize, u64);

/// What is known of one prefix of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Prefix {
    /// Its keyed hash.
    Hash(String),
    /// The prompt is shorter, or there is none.
    None,
    /// The prompt may be that long, but not all of it was seen.
    Unseen,
}

/// A request to a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Its first byte, ns after the first agent's window began; `None` when it was not seen.
    pub(super) at: Option<i128>,
    /// Place of its backend among those of the role.
    pub(super) backend: usize,
    pub(super) connection: ConnectionKey,
    pub(super) prefixes: [Prefix; PREFIX_SIZES.len()],
}

/// A backend and the agent whose rows are used for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Backend {
    pub(super) address: String,
    /// Name of the agent.
    pub(super) agent: String,
    pub(super) requests: u64,
    /// Requests without a prompt, such as health checks: they are not routed as inference.
    pub(super) others: u64,
    /// Connections on which requests can't be told apart.
    pub(super) opaque: u64,
    /// Time-weighted mean of requests in flight; `None` when the agent did not tell.
    pub(super) in_flight_mean: Option<f64>,
    pub(super) in_flight_peak: Option<u64>,
}

/// Everything that went to the backends of one role.
#[derive(Clone, Debug)]
pub(super) struct RoleTraffic {
    pub(super) role: Role,
    /// By address.
    pub(super) backends: Vec<Backend>,
    /// In order of their first bytes; those whose first byte was not seen come last.
    pub(super) requests: Vec<Request>,
}

/// What clients sent to the VIPs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientLeg {
    pub(super) requests: u64,
    /// Those that were not answered with an error status: the gateway sent them on.
    pub(super) sent_on: u64,
    /// VIPs watched.
    pub(super) vips: usize,
}

/// The fleet as the agents saw it.
#[derive(Clone, Debug)]
pub(super) struct Fleet {
    pub(super) clients: ClientLeg,
    pub(super) roles: Vec<RoleTraffic>,
}

/// A backend's identity: a loopback address is another server on each host.
type Identity = (String, Option<usize>);

fn identity(address: &str, agent: usize, agents: usize) -> Identity {
    let loopback =
        address.parse::<SocketAddr>().is_ok_and(|it| it.ip().to_canonical().is_loopback());
    (address.to_owned(), (loopback && agents > 1).then_some(agent))
}

/// Hashes by connection and request.
type Hashes<'a> = BTreeMap<(u64, u64), &'a PrefixRow>;

fn hashes(rows: &[PrefixRow]) -> Hashes<'_> {
    rows.iter().map(|row| ((row.connection, row.request_index), row)).collect()
}

fn end_of(row: &RequestRow, hashes: &Hashes<'_>) -> PromptEnd {
    let hash = hashes.get(&(row.connection, row.request_index));
    hash.map_or(PromptEnd::Cut, |hash| hash.prompt_end)
}

fn prefixes(row: &RequestRow, hashes: &Hashes<'_>) -> [Prefix; PREFIX_SIZES.len()] {
    let hash = hashes.get(&(row.connection, row.request_index));
    let end = end_of(row, hashes);
    std::array::from_fn(|size| match hash.and_then(|hash| hash.prefixes[size].as_ref()) {
        Some(hash) => Prefix::Hash(hash.clone()),
        None if end == PromptEnd::Cut => Prefix::Unseen,
        None => Prefix::None,
    })
}

impl Fleet {
    /// Joins the rows of a recording.
    pub(super) fn new(recording: &Recording) -> Self {
        let agents = &recording.agents;
        let hashes: Vec<Hashes<'_>> = agents.iter().map(|it| hashes(&it.prefixes)).collect();
        let owners = owners(agents);
        let roles = [Role::Backend, Role::Prefill, Role::Decode];
        let traffic = |role| RoleTraffic::new(role, agents, &hashes, &owners);
        Self {
            clients: clients(agents, &hashes),
            roles: roles.into_iter().map(traffic).filter(|it| !it.backends.is_empty()).collect(),
        }
    }
}

/// The agent whose rows count for each backend: the one that saw most requests there, so that none
/// counts twice.
fn owners(agents: &[AgentRows]) -> BTreeMap<Identity, usize> {
    let mut seen: BTreeMap<Identity, Vec<u64>> = BTreeMap::new();
    for (number, agent) in agents.iter().enumerate() {
        for endpoint in agent.part.endpoints.iter().filter(|it| it.role != Role::Vip) {
            let counts = seen.entry(identity(&endpoint.address, number, agents.len()));
            let rows = agent.requests.iter().filter(|row| row.endpoint == endpoint.address);
            counts.or_insert_with(|| vec![0; agents.len()])[number] = rows.count() as u64 + 1;
        }
    }
    let most = |counts: &Vec<u64>| {
        let ranked = counts.iter().enumerate().map(|(at, count)| (*count, std::cmp::Reverse(at)));
        ranked.max().map_or(0, |(_, at)| at.0)
    };
    seen.iter().map(|(identity, counts)| (identity.clone(), most(counts))).collect()
}

fn clients(agents: &[AgentRows], hashes: &[Hashes<'_>]) -> ClientLeg {
    let vips = |agent: &AgentRows| {
        let vips = agent.part.endpoints.iter().filter(|it| it.role == Role::Vip);
        vips.map(|it| it.address.clone()).collect::<Vec<_>>()
    };
    // The first agent that watches a VIP is the one that counts for it.
    let mut owners: BTreeMap<Identity, usize> = BTreeMap::new();
    for (number, agent) in agents.iter().enumerate() {
        for vip in vips(agent) {
            owners.entry(identity(&vip, number, agents.len())).or_insert(number);
        }
    }
    let mut clients = ClientLeg { vips: owners.len(), ..ClientLeg::default() };
    for (number, agent) in agents.iter().enumerate() {
        for row in agent.requests.iter().filter(|row| row.role == Role::Vip) {
            let owner = owners.get(&identity(&row.endpoint, number, agents.len()));
            if owner == Some(&number) && end_of(row, &hashes[number]) != PromptEnd::Absent {
                clients.requests += 1;
                clients.sent_on += u64::from(row.outcome != HTTP_STATUS);
            }
        }
    }
    clients
}

impl RoleTraffic {
    fn new(
        role: Role,
        agents: &[AgentRows],
        hashes: &[Hashes<'_>],
        owners: &BTreeMap<Identity, usize>,
    ) -> Self {
        let mut places: BTreeMap<Identity, usize> = BTreeMap::new();
        let mut backends = Vec::new();
        for (identity, owner) in owners {
            let part = &agents[*owner].part;
            let own = part.endpoints.iter().any(|it| it.address == identity.0 && it.role == role);
            if own {
                places.insert(identity.clone(), backends.len());
                backends.push(Backend::new(&identity.0, &agents[*owner], role));
            }
        }
        let mut traffic = Self { role, backends, requests: Vec::new() };
        for (number, agent) in agents.iter().enumerate() {
            for row in &agent.requests {
                let identity = identity(&row.endpoint, number, agents.len());
                let owned = owners.get(&identity) == Some(&number);
                if let Some(place) = places.get(&identity).filter(|_| owned) {
                    traffic.take(row, *place, number, agent, &hashes[number]);
                }
            }
        }
        traffic.requests.sort_by_key(|it| (it.at.is_none(), it.at, it.backend, it.connection));
        traffic
    }

    fn take(
        &mut self,
        row: &RequestRow,
        place: usize,
        number: usize,
        agent: &AgentRows,
        hashes: &Hashes<'_>,
    ) {
        let backend = &mut self.backends[place];
        if row.opaque.is_some() {
            backend.opaque += 1;
            return;
        }
        if end_of(row, hashes) == PromptEnd::Absent {
            backend.others += 1;
            return;
        }
        backend.requests += 1;
        let part = &agent.part;
        let opened = part.account.as_ref().map_or(0, |account| account.opened_ns);
        let after = i128::from(part.opened_after_ns) - i128::from(opened);
        self.requests.push(Request {
            at: row.request_first_ns.map(|first| i128::from(first) + after),
            backend: place,
            connection: (number, row.connection),
            prefixes: prefixes(row, hashes),
        });
    }
}

impl Backend {
    fn new(address: &str, agent: &AgentRows, role: Role) -> Self {
        let loads = agent.concentration.iter().flat_map(|it| &it.roles);
        let loads = loads.filter(|it| it.role == role).flat_map(|it| &it.endpoints);
        let load = loads.into_iter().find(|load| load.endpoint == address);
        Self {
            address: address.to_owned(),
            agent: agent.part.name.clone(),
            requests: 0,
            others: 0,
            opaque: 0,
            in_flight_mean: load.map(|load| load.requests_mean),
            in_flight_peak: load.map(|load| load.requests_peak),
        }
    }
}
