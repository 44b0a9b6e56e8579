//! Rows about what the kernel has.

use super::{Facts, Link, Row, State, split};
use crate::capture::tcx::{Method, has_ethernet_header};

const ASK: &str = "run goodput-agent doctor as root, or with CAP_BPF and CAP_NET_ADMIN";
const OLD: &str =
    "live capture needs Linux 5.8 or later; read a capture file instead: goodput-agent read FILE";

pub(super) fn rows(facts: &Facts, method: Option<Method>) -> Vec<Row> {
    let mut rows = vec![
        feature("kernel.ring_buffer", facts.ring_buffers, "BPF ring buffers", OLD),
        source(facts, method),
    ];
    rows.extend(socket_filter(facts, method));
    rows.push(socket_states(facts));
    rows.push(retransmissions(facts));
    rows.extend(programs(facts, method));
    rows
}

fn feature(check: &str, has: Option<bool>, name: &str, mend: &str) -> Row {
    match has {
        Some(true) => Row::ok(check, format!("the kernel has {name}")),
        Some(false) => Row::bad(State::Fail, check, format!("the kernel has no {name}"), mend),
        None => Row::bad(State::Unknown, check, "the kernel refuses to tell", ASK),
    }
}

/// Which source would be taken, and why.
fn source(facts: &Facts, method: Option<Method>) -> Row {
    const CHECK: &str = "kernel.source";
    const NO_TCX: &str = "TCX links need Linux 6.6 or later (or a distribution kernel that has \
                          them); leave out --source, or choose socket-filter";
    match (facts.forced, facts.tcx, method) {
        (Some(Method::Tcx), Some(false), _) => Row::bad(
            State::Fail,
            CHECK,
            "tcx is asked for, and the kernel has no TCX links",
            NO_TCX,
        ),
        (Some(forced), ..) => Row::ok(CHECK, format!("{}: it is asked for", forced.name())),
        (None, _, Some(Method::Tcx)) => Row::ok(CHECK, "tcx: the kernel has TCX links"),
        (None, _, Some(Method::SocketFilter)) => {
            Row::ok(CHECK, "socket-filter: the kernel has no TCX links (they came with Linux 6.6)")
        }
        (None, _, None) => Row::bad(State::Unknown, CHECK, "the kernel refuses to tell", ASK),
    }
}

/// Only the fallback needs them.
fn socket_filter(facts: &Facts, method: Option<Method>) -> Option<Row> {
    let check = "kernel.socket_filter";
    (method == Some(Method::SocketFilter))
        .then(|| feature(check, facts.socket_filters, "socket filters of eBPF", OLD))
}

fn socket_states(facts: &Facts) -> Row {
    const CHECK: &str = "kernel.socket_states";
    match &facts.socket_states {
        Ok(()) => Row::ok(CHECK, "sock:inet_sock_set_state has the layout that was compiled for"),
        Err(why) => {
            let (what, mend) = split(why, "run goodput-agent as root");
            Row::bad(State::Fail, CHECK, what, mend)
        }
    }
}

fn retransmissions(facts: &Facts) -> Row {
    const CHECK: &str = "kernel.retransmissions";
    match &facts.retransmits {
        Ok(()) => Row::ok(CHECK, "tcp:tcp_retransmit_skb has the layout that was compiled for"),
        Err(why) if facts.socket_states.is_err() => {
            Row::bad(State::Unknown, CHECK, split(why, "").0, "mend kernel.socket_states first")
        }
        Err(why) => Row::bad(
            State::Warn,
            CHECK,
            split(why, "").0,
            "none is needed: retransmissions are told from sequence numbers alone",
        ),
    }
}

/// Whether a program would be attached to what is watched; with no interface named, to Ethernet.
fn is_needed(program: &str, facts: &Facts, method: Option<Method>) -> bool {
    let ip = program.ends_with("_ip");
    let watched: Vec<_> = facts.watched().collect();
    match program {
        "packet_socket" => method != Some(Method::Tcx),
        "retransmit" => false,
        _ if ip || program.ends_with("_ethernet") => {
            let fits = |link: &&Link| has_ethernet_header(link.link_type) != ip;
            method != Some(Method::SocketFilter)
                && (watched.iter().any(fits) || (watched.is_empty() && !ip))
        }
        _ => true,
    }
}

/// The proof that nothing else is missing: the verifier took every program.
fn programs(facts: &Facts, method: Option<Method>) -> Vec<Row> {
    const CHECK: &str = "kernel.programs";
    const FIRST: &str =
        "mend the rows that fail first; if none does, report this kernel with the message";
    let loaded = match &facts.programs {
        None => return Vec::new(),
        Some(Err(why)) => return vec![Row::bad(State::Fail, CHECK, split(why, "").0, FIRST)],
        Some(Ok(loaded)) => loaded,
    };
    let good = loaded.iter().filter(|it| it.verdict.is_ok()).count();
    let walked = loaded.iter().filter_map(|it| Some((it.verdict.clone().ok()??, &it.name)));
    let most = walked.max().map_or_else(String::new, |(count, name)| {
        format!("; the verifier walked at most {count} instructions ({name})")
    });
    let mut rows = vec![Row::ok(CHECK, format!("{good} of {} load{most}", loaded.len()))];
    rows.extend(loaded.iter().filter_map(|it| {
        let why = it.verdict.as_ref().err()?;
        let check = format!("{CHECK}.{}", it.name);
        Some(if is_needed(&it.name, facts, method) {
            Row::bad(State::Fail, check, why, FIRST)
        } else {
            let found = format!("refused, and not needed for what is watched: {why}");
            Row::bad(State::Warn, check, found, "report this kernel with the message")
        })
    }));
    rows
}
