//! Whether a virtual service's traffic would be seen, tried with one request.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot::{Sender, channel};

use super::{Facts, Link, Row, State};
use crate::capture::tcx::{InterfaceRef, TcxConfig, TcxSource, canonical};
use crate::clock::{Clock as _, Monotonic};
use crate::config::DEFAULT_INTERVAL_MS;
use crate::endpoint::{Endpoint, Role};
use crate::flow::FlowLimits;
use crate::worker::{Command, Ending, Engine, EngineConfig, Opening};

/// A list of models is answered at once.
const PATIENCE: Duration = Duration::from_secs(5);
const DRAIN_MS: u64 = 1_000;
const POLL: Duration = Duration::from_millis(5);

/// Address of a virtual service, as `HOST:PORT` or as a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vip(pub SocketAddr);

/// No address of a virtual service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no virtual service: write ADDRESS:PORT or http://ADDRESS:PORT, names are not looked up"
)]
pub struct VipParseError(String);

impl FromStr for Vip {
    type Err = VipParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = text.strip_prefix("http://").unwrap_or(text);
        let authority = rest.split('/').next().unwrap_or(rest);
        let bare = authority.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let address = authority.parse().or_else(|error| match bare {
            Ok(ip) if rest.len() < text.len() => Ok(SocketAddr::new(ip, 80)),
            _ => Err(error),
        });
        address.map(|it| Self(canonical(it))).map_err(|_| VipParseError(text.to_owned()))
    }
}

impl fmt::Display for Vip {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// What is known of a virtual service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VipFacts {
    /// Its address.
    pub vip: SocketAddr,
    /// Address from which this host would reach it.
    pub from: Option<IpAddr>,
    /// Status of the answer to one request, or why there was none.
    pub answer: Result<u16, String>,
    /// What was seen of that request, or why it could not be watched.
    pub seen: Result<Seen, String>,
    /// Backends that are configured.
    pub backends: Vec<SocketAddr>,
}

/// What the agent saw of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// It saw the client's leg.
    pub client_leg: bool,
    /// Backends that got a request with its trace id.
    pub traced: BTreeSet<SocketAddr>,
    /// Backends that got a request without it, or with another.
    pub untraced: BTreeSet<SocketAddr>,
}

pub(super) fn rows(facts: &VipFacts, host: &Facts) -> Vec<Row> {
    let mut rows = vec![route(facts, host), answer(facts)];
    rows.extend(visible(facts, host));
    rows
}

fn is_local(facts: &VipFacts) -> bool {
    facts.from == Some(facts.vip.ip()) || facts.vip.ip().is_loopback()
}

/// Where a request from this host to the service leaves.
fn crossing<'a>(facts: &VipFacts, host: &'a Facts) -> Option<&'a str> {
    let links = host.links.as_ref().ok()?;
    let leaves = |link: &&Link| match facts.from {
        _ if is_local(facts) => link.loopback,
        Some(from) => link.addresses.contains(&from),
        None => false,
    };
    links.iter().find(leaves).map(|link| link.name.as_str())
}

fn route(facts: &VipFacts, host: &Facts) -> Row {
    const CHECK: &str = "vip.route";
    let vip = facts.vip;
    let holder = host.links.iter().flatten().find(|link| link.addresses.contains(&vip.ip()));
    match (holder, facts.from) {
        (Some(link), _) => {
            let found = format!("{vip} is an address of {} on this host", link.name);
            let watched = host.watched().any(|it| it.name == link.name);
            if watched || host.wanted.is_empty() || link.loopback {
                return Row::ok(CHECK, found);
            }
            let mend = format!("watch {} as well: clients come in there", link.name);
            Row::bad(State::Warn, CHECK, format!("{found}, which is not watched"), mend)
        }
        (None, Some(from)) => {
            let via = crossing(facts, host).unwrap_or("an unknown interface");
            Row::ok(
                CHECK,
                format!("{vip} is no address of this host; reached from {from} by {via}"),
            )
        }
        (None, None) => Row::bad(
            State::Fail,
            CHECK,
            format!("there is no route to {vip}"),
            "ip route get shows why; on a gateway run doctor where the service's address is",
        ),
    }
}

fn answer(facts: &VipFacts) -> Row {
    const CHECK: &str = "vip.answer";
    match &facts.answer {
        Ok(status) => Row::ok(CHECK, format!("GET /v1/models answered {status}")),
        Err(why) => Row::bad(
            State::Fail,
            CHECK,
            format!("GET /v1/models to {}: {why}", facts.vip),
            "start the service, or name the address that it listens on",
        ),
    }
}

fn visible(facts: &VipFacts, host: &Facts) -> Vec<Row> {
    const CHECK: &str = "vip.visible";
    let watched = host.wanted.join(", ");
    match &facts.seen {
        Err(why) => {
            let mend = "name the interfaces with --interface, and mend the rows that fail";
            vec![Row::bad(State::Unknown, CHECK, why, mend)]
        }
        Ok(_) if facts.answer.is_err() => Vec::new(),
        Ok(seen) if seen.client_leg => {
            let found = format!("the request to the service was seen on {watched}");
            vec![Row::ok(CHECK, found), forwarded(facts, seen)]
        }
        Ok(_) => {
            let via = crossing(facts, host).unwrap_or("another interface");
            let state = if is_local(facts) { State::Unknown } else { State::Fail };
            let found =
                format!("the request from this host went by {via} and was not seen on {watched}");
            let mend =
                format!("add --interface {via}, or run doctor on the host that clients reach");
            vec![Row::bad(state, CHECK, found, mend)]
        }
    }
}

/// Legs are paired by the trace id alone: a gateway that drops it leaves delivery unknown.
fn forwarded(facts: &VipFacts, seen: &Seen) -> Row {
    const CHECK: &str = "vip.traceparent";
    let list = |set: &BTreeSet<SocketAddr>| {
        set.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    if !seen.traced.is_empty() {
        return Row::ok(CHECK, format!("forwarded to {}", list(&seen.traced)));
    }
    if facts.backends.is_empty() {
        let mend = "name them: --endpoint backend=ADDRESS:PORT, or endpoints in --config";
        return Row::bad(State::Unknown, CHECK, "no backend is configured", mend);
    }
    if !seen.untraced.is_empty() {
        let found = format!("{} got requests, none with this one's trace id", list(&seen.untraced));
        let mend = "let the gateway forward the header traceparent unchanged";
        return Row::bad(State::Warn, CHECK, found, mend);
    }
    Row::bad(
        State::Unknown,
        CHECK,
        "no configured backend got a request on the interfaces watched",
        "watch the interface towards the backends, and check their addresses",
    )
}

/// Sends one request, with a trace id of its own, and watches it.
pub(super) fn look(vip: Vip, host: &Facts, endpoints: &[Endpoint]) -> VipFacts {
    let vip = vip.0;
    let backends: Vec<SocketAddr> =
        endpoints.iter().filter(|it| it.role != Role::Vip).map(|it| it.address).collect();
    let mut facts = VipFacts {
        vip,
        from: source_address(vip),
        answer: Err("not tried: there is no route".to_owned()),
        seen: Err("not tried".to_owned()),
        backends,
    };
    let mut watch = Watch::open(host, &facts);
    let trace = trace_id(vip);
    facts.answer = request(vip, &trace, watch.as_mut().ok()).map_err(|error| error.to_string());
    facts.seen = watch.map(|mut watch| seen(&watch.rows(), &trace, vip));
    facts
}

/// The kernel's choice, which asking for sends nothing.
fn source_address(vip: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match vip {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(vip).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

fn trace_id(vip: SocketAddr) -> String {
    let seed = format!("{vip} {} {}", Monotonic.now().get(), std::process::id());
    let digest = Sha256::digest(seed.as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The status of the answer; records are taken out while it is waited for.
fn request(vip: SocketAddr, trace: &str, mut watch: Option<&mut Watch>) -> std::io::Result<u16> {
    let mut stream = TcpStream::connect_timeout(&vip, PATIENCE)?;
    stream.set_read_timeout(Some(POLL))?;
    write!(
        stream,
        "GET /v1/models HTTP/1.1\r\nHost: {vip}\r\ntraceparent: 00-{trace}-{}-00\r\n\
         Accept-Encoding: identity\r\nConnection: close\r\n\r\n",
        &trace[16..]
    )?;
    let (mut answer, mut buffer) = (Vec::new(), [0; 16 * 1024]);
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(watch) = &mut watch {
            watch.engine.poll(Duration::ZERO);
        }
        match stream.read(&mut buffer) {
            Ok(0) => break,
            // Only its beginning is of interest; the rest is read so that the other side may end.
            Ok(len) if answer.len() < buffer.len() => answer.extend(buffer.iter().take(len)),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    status(&answer).ok_or_else(|| std::io::Error::other("no HTTP/1 answer within 5 s"))
}

fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?.strip_prefix("HTTP/1.")?;
    line.split(' ').nth(1)?.parse().ok()
}

fn seen(rows: &[Value], trace: &str, vip: SocketAddr) -> Seen {
    let mut seen = Seen::default();
    for row in rows {
        let endpoint = row["endpoint"].as_str().and_then(|text| text.parse::<SocketAddr>().ok());
        let traced = row["trace_id"] == trace;
        match endpoint {
            Some(endpoint) if endpoint == vip => seen.client_leg |= traced,
            Some(endpoint) if traced => drop(seen.traced.insert(endpoint)),
            Some(endpoint) => drop(seen.untraced.insert(endpoint)),
            None => {}
        }
    }
    seen
}

/// The agent itself, in one window.
struct Watch {
    engine: Engine,
    window: String,
}

impl Watch {
    fn open(host: &Facts, facts: &VipFacts) -> Result<Self, String> {
        if host.wanted.is_empty() {
            return Err("no interface is named".to_owned());
        }
        let vip = Endpoint { address: facts.vip, role: Role::Vip };
        let backend = |address: &SocketAddr| Endpoint { address: *address, role: Role::Backend };
        let mut endpoints: BTreeMap<_, _> =
            facts.backends.iter().map(|it| (*it, backend(it))).collect();
        endpoints.insert(facts.vip, vip);
        let interface = |name: &String| match name.parse::<InterfaceRef>() {
            Ok(reference) => reference,
            Err(never) => match never {},
        };
        let interfaces = host.wanted.iter().map(interface).collect();
        let addresses = endpoints.keys().copied().collect();
        let config = TcxConfig { method: host.forced, ..TcxConfig::new(interfaces, addresses) };
        let source = TcxSource::open(&config).map_err(|error| error.to_string())?;
        let config = EngineConfig {
            endpoints: endpoints.into_values().collect(),
            interfaces: BTreeMap::new(),
            interval_ns: DEFAULT_INTERVAL_MS * 1_000_000,
            limits: FlowLimits::default(),
            jsonl: None,
            clock: Arc::new(Monotonic),
        };
        let mut watch =
            Self { engine: Engine::new(Box::new(source), config), window: String::new() };
        let opened = watch.ask(|reply| Command::Open(Opening::new("doctor"), reply));
        watch.window = opened.and_then(Result::ok).map(|it| it.window_id).unwrap_or_default();
        Ok(watch)
    }

    fn ask<T>(&mut self, command: impl FnOnce(Sender<T>) -> Command) -> Option<T> {
        let (reply, mut answer) = channel();
        self.engine.serve(command(reply));
        let deadline = Instant::now() + PATIENCE;
        loop {
            match answer.try_recv() {
                Ok(answer) => return Some(answer),
                Err(_) if Instant::now() > deadline => return None,
                Err(_) => self.engine.poll(POLL),
            }
        }
    }

    /// What was seen by now.
    fn rows(&mut self) -> Vec<Value> {
        let id = self.window.clone();
        self.ask(|reply| Command::Close(Ending::new(&id, DRAIN_MS), reply));
        let rows = self.ask(|reply| Command::Observations(id, reply)).and_then(Result::ok);
        rows.unwrap_or_default().iter().filter_map(|row| serde_json::from_str(row).ok()).collect()
    }
}
