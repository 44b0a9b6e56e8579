//! Client, gateway and backend in network namespaces of their own, an agent on each of the last two:
//! legs are joined by trace-id, and only durations are compared.

use e2e::agent::{Agent, Watch};
use e2e::cross_check::cross_check;
use e2e::fleet::Fleet;
use e2e::namespace::{LinkEnd, Namespace, link};
use e2e::replay::Replay;
use e2e::require_kernel;
use e2e::trace::Trace;

const BACKENDS: &str = "
[[backend]]
name = 'b0'
listen = '198.18.1.2:8000'
";
const GATEWAY: &str = "
[[gateway]]
name = 'vip'
vip = '198.18.0.1:8000'
endpoints = ['198.18.1.2:8000']
policy = { algorithm = 'round_robin' }
";
const ROWS: usize = 20;

struct Hosts {
    client: Namespace,
    gateway: Namespace,
    backend: Namespace,
}

fn hosts() -> anyhow::Result<Hosts> {
    let (client, gateway) = (Namespace::new("client")?, Namespace::new("gateway")?);
    let backend = Namespace::new("backend")?;
    link(
        LinkEnd { namespace: &client, interface: "up0", address: "198.18.0.2/24" },
        LinkEnd { namespace: &gateway, interface: "down0", address: "198.18.0.1/24" },
    )?;
    link(
        LinkEnd { namespace: &gateway, interface: "up0", address: "198.18.1.1/24" },
        LinkEnd { namespace: &backend, interface: "down0", address: "198.18.1.2/24" },
    )?;
    Ok(Hosts { client, gateway, backend })
}

#[test]
fn legs_seen_by_two_agents_are_joined() -> anyhow::Result<()> {
    require_kernel!();
    let hosts = hosts()?;
    let _backends = Fleet::start_in(&hosts.backend, BACKENDS)?;
    let fleet = Fleet::start_in(&hosts.gateway, GATEWAY)?;
    let vip = fleet.vip("vip")?;
    let watch =
        |vips, backends| Watch { interfaces: vec!["down0"], api: "127.0.0.1:9911", vips, backends };
    let at_gateway = Agent::start_in(&hosts.gateway, &watch(vec![vip], vec![]))?;
    let backend = "198.18.1.2:8000".parse()?;
    let at_backend = Agent::start_in(&hosts.backend, &watch(vec![], vec![backend]))?;
    let apis = (at_gateway.api(), at_backend.api());

    let first = hosts.gateway.inside(|| apis.0.open("gateway"))?;
    let second = hosts.backend.inside(|| apis.1.open("backend"))?;
    let trace = Trace { rows: ROWS, groups: 2, blocks: 2, output_tokens: 4 }.text();
    let replay = Replay { to: vip, trace: &trace, rate: 20.0, more: &["--model", "sim-model"] };
    let folder = tempfile::tempdir()?;
    let requests = replay.run_in(&hosts.client, folder.path())?;
    let first = hosts.gateway.inside(|| apis.0.close(&first))?;
    let second = hosts.backend.inside(|| apis.1.close(&second))?;

    first.ensure_complete()?;
    second.ensure_complete()?;
    let joined = cross_check(&requests, &[&first, &second])?;
    let rows = u64::try_from(ROWS)?;
    assert_eq!((joined.completed, joined.on_client_leg, joined.on_backend_leg), (rows, rows, rows));
    assert_eq!((joined.split.gateway.n, joined.unpaired_share), (rows, Some(0.0)));
    assert!(joined.disagreements.is_empty(), "{:?}", joined.disagreements);
    // Instants of two hosts are never subtracted from each other.
    assert_eq!(joined.split.gateway_request_path.n, 0);
    eprintln!("gateway part over two agents: {:?}", joined.split.gateway);
    Ok(())
}
