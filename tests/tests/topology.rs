//! Client, gateway and two backends in namespaces of their own, agents on the gateway and on a backend, and
//! a datapath like LoxiLB's that comes and goes on the same interfaces.

#![expect(clippy::unwrap_used, reason = "the neighbour's helpers fail the test")]

#[path = "../../agent/tests/live/neighbour.rs"]
#[expect(dead_code, reason = "the agent's own tests attach it by TCX, too")]
mod neighbour;

use std::collections::BTreeMap;

use anyhow::Context as _;
use e2e::agent::{Agent, Api, Watch, Window};
use e2e::cross_check::cross_check;
use e2e::fleet::Fleet;
use e2e::jsonl::{number, text};
use e2e::namespace::{LinkEnd, Namespace, link};
use e2e::process::check;
use e2e::replay::Replay;
use e2e::require_kernel;
use e2e::trace::Trace;
use neighbour::Neighbour;
use nix::net::if_::if_nametoindex;
use serde_json::Value;

const BACKENDS: [&str; 2] = ["198.18.1.2:8000", "198.18.2.2:8000"];
const GATEWAY: &str = "
[[gateway]]
name = 'vip'
vip = '198.18.0.1:8000'
endpoints = ['198.18.1.2:8000', '198.18.2.2:8000']
policy = { algorithm = 'round_robin' }
";
const ROWS: usize = 30;
const TOKENS: usize = 6;
/// `TC_ACT_OK`: what LoxiLB returns for a packet that it lets pass.
const PASS: u32 = 0;

struct Hosts {
    client: Namespace,
    gateway: Namespace,
    backends: [Namespace; 2],
}

fn hosts() -> anyhow::Result<Hosts> {
    let (client, gateway) = (Namespace::new("client")?, Namespace::new("gateway")?);
    let backends = [Namespace::new("b0")?, Namespace::new("b1")?];
    let end = |namespace, interface, address| LinkEnd { namespace, interface, address };
    link(end(&client, "up0", "198.18.0.2/24"), end(&gateway, "down0", "198.18.0.1/24"))?;
    link(end(&gateway, "up0", "198.18.1.1/24"), end(&backends[0], "down0", "198.18.1.2/24"))?;
    link(end(&gateway, "up1", "198.18.2.1/24"), end(&backends[1], "down0", "198.18.2.2/24"))?;
    Ok(Hosts { client, gateway, backends })
}

fn backend(hosts: &Hosts, i: usize) -> anyhow::Result<Fleet> {
    let file = format!(
        "[engine]\ndecode_interval_us = 5000\n[[backend]]\nname = 'b{i}'\nlisten = '{}'\n",
        BACKENDS[i]
    );
    Fleet::start_in(&hosts.backends[i], &file)
}

/// An interface with a datapath like LoxiLB's on it.
struct Datapath<'a> {
    host: &'a Namespace,
    interface: &'static str,
    program: Neighbour,
}

impl<'a> Datapath<'a> {
    /// Attaches as LoxiLB does: `add` is exclusive and fails where somebody else has made a clsact.
    fn attach(host: &'a Namespace, interface: &'static str) -> anyhow::Result<Self> {
        let path = Self { host, interface, program: Neighbour::new(PASS) };
        path.qdisc("add")?;
        host.inside(|| {
            path.program.in_clsact(if_nametoindex(interface)?);
            Ok(())
        })?;
        Ok(path)
    }

    /// LoxiLB's start and stop: everything in clsact goes.
    fn wipe(self) -> anyhow::Result<u64> {
        self.qdisc("del")?;
        Ok(self.program.seen())
    }

    fn qdisc(&self, action: &str) -> anyhow::Result<()> {
        let mut tc = self.host.command("tc");
        tc.args(["qdisc", action, "dev", self.interface, "clsact"]);
        check(tc).map(drop)
    }
}

/// Packets that arrived on an interface, by the kernel's own count.
fn arrived(host: &Namespace, interface: &str) -> anyhow::Result<u64> {
    let mut ip = host.command("ip");
    ip.args(["-s", "-j", "link", "show", "dev", interface]);
    let shown: Value = serde_json::from_str(&check(ip)?)?;
    shown[0]["stats64"]["rx"]["packets"].as_u64().context("no rx packets of the interface")
}

/// Every interface on which an agent looks at a leg.
fn watched(hosts: &Hosts) -> [(&Namespace, &'static str); 4] {
    let gateway = &hosts.gateway;
    [(gateway, "down0"), (gateway, "up0"), (gateway, "up1"), (&hosts.backends[0], "down0")]
}

/// One replay with both agents' windows around it; `meanwhile` runs while requests are under way.
fn observe(
    hosts: &Hosts,
    agents: (&Api, &Api),
    meanwhile: impl FnOnce(&dyn Fn() -> bool) -> anyhow::Result<()>,
) -> anyhow::Result<(Vec<Value>, Window, Window)> {
    let trace = Trace { rows: ROWS, groups: 2, blocks: 2, output_tokens: TOKENS }.text();
    let to = "198.18.0.1:8000".parse()?;
    let more = ["--model", "sim-model"];
    let replay = Replay { to, trace: &trace, rate: 15.0, more: &more };
    let folder = tempfile::tempdir()?;
    let (gateway, backend) = (&hosts.gateway, &hosts.backends[0]);
    let first = gateway.inside(|| agents.0.open("gateway"))?;
    let second = backend.inside(|| agents.1.open("backend"))?;
    let requests = std::thread::scope(|scope| {
        let running = scope.spawn(|| replay.run_in(&hosts.client, folder.path()));
        let churned = meanwhile(&|| !running.is_finished());
        let requests = running.join().unwrap_or_else(|_| anyhow::bail!("the replay panicked"))?;
        churned.map(|()| requests)
    })?;
    let first = gateway.inside(|| agents.0.close(&first))?;
    let second = backend.inside(|| agents.1.close(&second))?;
    assert_equal(&requests, &first, &second)?;
    Ok((requests, first, second))
}

/// Both agents saw every request of their legs with the client's own count of tokens.
fn assert_equal(requests: &[Value], gateway: &Window, backend: &Window) -> anyhow::Result<()> {
    gateway.ensure_complete()?;
    backend.ensure_complete()?;
    let joined = cross_check(requests, &[gateway, backend])?;
    let rows = u64::try_from(ROWS)?;
    assert_eq!((joined.completed, joined.on_client_leg, joined.on_backend_leg), (rows, rows, rows));
    assert!(joined.disagreements.is_empty(), "{:?}", joined.disagreements);
    let half = rows / 2;
    let shares = BACKENDS.map(|address| (address.to_owned(), half));
    assert_eq!(joined.backend_requests, BTreeMap::from(shares), "round robin");
    let own = backend.observations.iter().filter(|row| text(row, "leg") == "backend");
    assert_eq!(own.count() as u64, half, "the backend's agent sees its own half");
    for request in requests {
        let id = text(request, "trace_id");
        let tokens = number(request, "token_events");
        assert_eq!(tokens, Some(i64::try_from(TOKENS)?), "{request}");
        let legs = [gateway.leg(id, "client"), gateway.leg(id, "backend")];
        for leg in legs.into_iter().chain([backend.leg(id, "backend")]).flatten() {
            assert_eq!(number(leg, "token_events"), tokens, "{leg}");
            assert_eq!(text(leg, "framing"), "valid", "{leg}");
        }
        let bytes = number(request, "response_bytes");
        let leg = gateway.leg(id, "client").context("no client leg")?;
        assert_eq!(number(leg, "response_bytes"), bytes, "{leg}");
    }
    Ok(())
}

/// While nothing changes, a datapath sees every packet that its interface receives.
fn observe_beside(
    hosts: &Hosts,
    agents: (&Api, &Api),
    datapaths: &[Datapath<'_>],
) -> anyhow::Result<()> {
    let counts = || -> anyhow::Result<Vec<(u64, u64)>> {
        let count = |it: &Datapath<'_>| Ok((arrived(it.host, it.interface)?, it.program.seen()));
        datapaths.iter().map(count).collect()
    };
    let before = counts()?;
    observe(hosts, agents, |_| Ok(()))?;
    let after = counts()?;
    for (i, (before, after)) in before.iter().zip(&after).enumerate() {
        let (packets, seen) = (after.0 - before.0, after.1 - before.1);
        assert!(packets > ROWS as u64, "interface {i}: {packets} packets");
        assert_eq!(packets, seen, "interface {i}: packets that the other program saw");
    }
    Ok(())
}

#[test]
fn agents_and_a_clsact_datapath_both_see_everything_in_a_topology_of_four_hosts()
-> anyhow::Result<()> {
    require_kernel!();
    let hosts = hosts()?;
    let _backends = [backend(&hosts, 0)?, backend(&hosts, 1)?];
    let _fleet = Fleet::start_in(&hosts.gateway, GATEWAY)?;
    let attach = || -> anyhow::Result<Vec<Datapath<'_>>> {
        watched(&hosts).into_iter().map(|(host, name)| Datapath::attach(host, name)).collect()
    };
    let before = attach()?;

    let backends = BACKENDS.iter().map(|address| address.parse()).collect::<Result<Vec<_>, _>>()?;
    let (vips, api) = (vec!["198.18.0.1:8000".parse()?], "127.0.0.1:9911");
    let interfaces = vec!["down0", "up0", "up1"];
    let watch = Watch { interfaces, api, vips, backends: backends.clone() };
    let at_gateway = Agent::start_in(&hosts.gateway, &watch)?;
    let (interfaces, backends) = (vec!["down0"], vec![backends[0]]);
    let watch = Watch { interfaces, api, vips: vec![], backends };
    let at_backend = Agent::start_in(&hosts.backends[0], &watch)?;
    let agents = (at_gateway.api(), at_backend.api());

    observe_beside(&hosts, agents, &before).context("attached before the agents")?;
    for datapath in before {
        assert!(datapath.wipe()? > 0);
    }
    observe(&hosts, agents, |_| Ok(())).context("wiped")?;

    let mut rounds = 0_u64;
    observe(&hosts, agents, |under_way| {
        while under_way() {
            attach()?.into_iter().try_for_each(|datapath| datapath.wipe().map(drop))?;
            rounds += 1;
        }
        Ok(())
    })
    .context("made and wiped while requests were under way")?;
    assert!(rounds > 0);
    eprintln!("the datapath came and went {rounds} times on four interfaces");

    let after = attach()?;
    observe_beside(&hosts, agents, &after).context("attached after the agents")
}
