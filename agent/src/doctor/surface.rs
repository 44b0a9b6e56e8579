//! Rows about the configuration, the API and what the agent writes.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::{ApiState, Facts, Row, State, TokenFile, split};

/// A shorter token can be guessed.
const SHORTEST_TOKEN: usize = 16;
const NEW_TOKEN: &str = "(umask 077; openssl rand -hex 32 > agent.token)";

pub(super) fn rows(facts: &Facts) -> Vec<Row> {
    let mut rows = vec![config(facts)];
    rows.extend(facts.api.as_ref().map(|state| api(facts, state)));
    rows.extend(facts.token.as_ref().map(token));
    rows.extend(facts.jsonl.as_ref().map(|(path, writable)| match writable {
        Ok(()) => Row::ok("config.jsonl", format!("{} can be written", path.display())),
        Err(why) => Row::bad(
            State::Fail,
            "config.jsonl",
            format!("{}: {why}", path.display()),
            "choose a writable file with --jsonl",
        ),
    }));
    rows.push(sockets(facts));
    rows
}

fn config(facts: &Facts) -> Row {
    const CHECK: &str = "config";
    match &facts.config {
        None => Row::ok(CHECK, "none named; --config FILE looks at one"),
        Some(Ok(config)) => {
            let (endpoints, interfaces) = (config.endpoints.len(), config.interfaces.len());
            Row::ok(CHECK, format!("valid: {endpoints} endpoints, {interfaces} interfaces"))
        }
        Some(Err(why)) => {
            let (what, mend) = split(why, "docs/agent.md lists the keys");
            Row::bad(State::Fail, CHECK, what, mend)
        }
    }
}

fn api(facts: &Facts, state: &ApiState) -> Row {
    const CHECK: &str = "api";
    let config = facts.config.as_ref().and_then(|it| it.as_ref().ok());
    let at = config.map_or_else(String::new, |it| it.api.to_string());
    match state {
        ApiState::Free => Row::ok(CHECK, format!("{at} is free")),
        ApiState::Agent => Row::bad(
            State::Warn,
            CHECK,
            format!("an agent answers at {at} already"),
            "stop it before starting another, or give the other another --api",
        ),
        ApiState::Refused(why) => Row::bad(
            State::Fail,
            CHECK,
            format!("can't listen on {at}: {why}"),
            "choose another address with --api",
        ),
    }
}

fn token(file: &TokenFile) -> Row {
    const CHECK: &str = "api.token";
    let name = file.path.display();
    match &file.content {
        Err(why) => Row::bad(
            State::Fail,
            CHECK,
            format!("{name}: {why}"),
            format!("write a token into a file that the agent may read: {NEW_TOKEN}"),
        ),
        Ok((_, length)) if *length < SHORTEST_TOKEN => Row::bad(
            State::Warn,
            CHECK,
            format!("{name}: {length} bytes can be guessed"),
            NEW_TOKEN,
        ),
        Ok((mode, _)) if mode & 0o007 != 0 => Row::bad(
            State::Warn,
            CHECK,
            format!("{name}: mode {:03o} lets everybody read it", mode & 0o777),
            format!("chmod o-rwx {name}"),
        ),
        Ok(_) => Row::ok(CHECK, format!("{name} holds one")),
    }
}

/// Where the connections of each endpoint are counted.
fn sockets(facts: &Facts) -> Row {
    const CHECK: &str = "sockets";
    let places = match &facts.sockets {
        Ok(places) => places,
        Err(why) => {
            let mend = "modprobe tcp_diag (CONFIG_INET_TCP_DIAG)";
            return Row::bad(State::Warn, CHECK, why, mend);
        }
    };
    let served: BTreeSet<SocketAddr> =
        places.namespaces.iter().flat_map(|it| it.endpoints.iter().copied()).collect();
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        facts.endpoints().into_iter().partition(|it| served.contains(it));
    let list = |all: &[SocketAddr]| {
        let all = all.iter().map(ToString::to_string).collect::<Vec<_>>();
        if all.is_empty() { "none".to_owned() } else { all.join(", ") }
    };
    let count = places.namespaces.len();
    Row::ok(
        CHECK,
        format!(
            "inet_diag lists {count} network namespace(s); exact: {}; estimated from packets, as no \
             socket listens on this host: {}",
            list(&here),
            list(&elsewhere)
        ),
    )
}
