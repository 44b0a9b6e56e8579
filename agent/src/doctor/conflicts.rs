//! Rows about programs of others on the interfaces to watch.

use super::{Facts, Row, State, split};
use crate::capture::foreign::{ForeignProgram, Hook};
use crate::capture::tcx::Method;

/// Beginnings of the names of the agent's own programs, of which the kernel keeps 15 bytes.
const OWN: [&str; 4] = ["ingress_etherne", "egress_ethernet", "ingress_ip", "egress_ip"];

pub(super) fn rows(facts: &Facts, method: Option<Method>) -> Vec<Row> {
    facts.foreign.iter().flat_map(|(name, listed)| interface(name, listed, method)).collect()
}

fn interface(
    name: &str,
    listed: &Result<Vec<ForeignProgram>, String>,
    method: Option<Method>,
) -> Vec<Row> {
    let check = format!("programs.{name}");
    match listed {
        Err(why) => {
            let mend = "run goodput-agent doctor as root or with CAP_NET_ADMIN";
            vec![Row::bad(State::Unknown, check, split(why, mend).0, mend)]
        }
        Ok(programs) if programs.is_empty() => vec![Row::ok(check, "no TC, TCX or XDP program")],
        Ok(programs) => programs.iter().map(|program| row(&check, program, method)).collect(),
    }
}

fn row(check: &str, program: &ForeignProgram, method: Option<Method>) -> Row {
    let found = described(program);
    match program.hook {
        Hook::Xdp => Row::bad(
            State::Warn,
            check,
            format!("{found}: in front of the agent; what it drops or redirects is not seen"),
            "watch the interface that packets are redirected to as well; windows say preempted when \
             packets are missing",
        ),
        _ if program.before_agent == Some(true) => Row::bad(
            State::Warn,
            check,
            format!("{found}: in front of the agent; what it keeps is not seen"),
            "start the agent after it, so that the agent is first again",
        ),
        _ if is_own(program) => Row::ok(check, format!("{found}: an agent that runs already")),
        _ if method == Some(Method::SocketFilter) => {
            Row::ok(check, format!("{found}: packet sockets see packets before it"))
        }
        _ => Row::ok(check, format!("{found}: behind the agent, which attaches in front")),
    }
}

fn is_own(program: &ForeignProgram) -> bool {
    let tcx = matches!(program.hook, Hook::TcxIngress | Hook::TcxEgress);
    tcx && program.name.as_deref().is_some_and(|name| OWN.contains(&name))
}

fn described(program: &ForeignProgram) -> String {
    let hook = match program.hook {
        Hook::Xdp => "XDP",
        Hook::TcxIngress => "TCX ingress",
        Hook::TcIngress => "TC ingress",
        Hook::TcxEgress => "TCX egress",
        Hook::TcEgress => "TC egress",
    };
    let name = program.name.as_deref().unwrap_or("without a name");
    let id = program.id.map_or_else(String::new, |id| format!(", id {id}"));
    let priority = program.priority.map_or_else(String::new, |it| format!(", priority {it}"));
    format!("{hook} program {name}{id}{priority}")
}
