//! Rows about the interfaces to watch.

use super::{Facts, Link, Row, State};
use crate::capture::tcx::can_watch;

pub(super) fn rows(facts: &Facts) -> Vec<Row> {
    let links = match &facts.links {
        Ok(links) => links,
        Err(why) => {
            let mend =
                "allow the process to open netlink sockets (RestrictAddressFamilies, seccomp)";
            return vec![Row::bad(State::Unknown, "interfaces", why, mend)];
        }
    };
    if facts.wanted.is_empty() {
        let names: Vec<_> = links.iter().filter(|it| it.up).map(|it| it.name.as_str()).collect();
        let found = format!("none named; up here: {}", names.join(", "));
        return vec![Row::ok("interfaces", found)];
    }
    facts.wanted.iter().flat_map(|wanted| named(facts, links, wanted)).collect()
}

fn named(facts: &Facts, links: &[Link], wanted: &str) -> Vec<Row> {
    let check = format!("interface.{wanted}");
    let Some(link) = facts.link(wanted) else {
        let names: Vec<_> = links.iter().map(|it| it.name.as_str()).collect();
        let mend = format!("name one of: {}", names.join(", "));
        return vec![Row::bad(State::Fail, check, "there is no such interface", mend)];
    };
    let mut rows = vec![state(check, link)];
    rows.extend(merged(link));
    rows
}

fn state(check: String, link: &Link) -> Row {
    let mtu = link.mtu.map_or_else(String::new, |mtu| format!(", MTU {mtu}"));
    let found = format!("index {}, link type {}{mtu}", link.index, link.link_type);
    if !can_watch(link.link_type) {
        let mend = "name an Ethernet, loopback, tun or IP tunnel interface";
        return Row::bad(
            State::Fail,
            check,
            format!("{found}: a link type without IP packets"),
            mend,
        );
    }
    if !link.up {
        let mend = format!("sudo ip link set {} up", link.name);
        return Row::bad(State::Warn, check, format!("{found}: it is down"), mend);
    }
    Row::ok(check, format!("{found}, up"))
}

/// Segments that are merged before the agent sees them share one stamp.
fn merged(link: &Link) -> Option<Row> {
    let check = format!("interface.{}.merging", link.name);
    if link.lro == Some(true) {
        return Some(Row::bad(
            State::Warn,
            check,
            "LRO is on: the card merges segments, and stamps are those of the merged ones",
            format!("sudo ethtool -K {} lro off", link.name),
        ));
    }
    // Only segments without PSH wait for others: an event of a stream is not held back.
    let gro = link.gro? && !link.loopback;
    gro.then(|| {
        Row::ok(check, "GRO is on: a large body is one record per merge; events are not merged")
    })
}
