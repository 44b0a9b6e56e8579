//! The tracepoint's count of one endpoint, checked against the kernel's list of sockets.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use protocol::Nanos;
use serde::Serialize;

use super::series::Series;
use super::sockets::gauge_change;
use crate::capture::SocketTransition;
use crate::sockdiag::{NamespaceId, NamespaceSockets};

/// Why an endpoint is taken for a socket of this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Nothing says so: its packets are forwarded, or nobody serves it.
    #[default]
    None,
    /// The kernel told of a change of state of a socket at this address.
    Transition,
    /// A network namespace lists a listening socket or a connection at this address.
    Socket,
}

/// How far tracepoint and list of sockets agree on an endpoint; keys are written in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// Connections listed minus connections counted, at the last reconciliation; `None` where the
    /// list can't be compared.
    pub drift: Option<i64>,
    /// When the last reconciliation was made.
    pub reconciled_ns: Option<Nanos>,
    /// Reconciliations so far.
    pub reconciliations: u64,
    /// Times a drift stayed and the count was set right.
    pub corrections: u64,
    /// Times records were lost and the count was set to the kernel's own.
    pub resynchronisations: u64,
    /// Connections that are older than the watch of the endpoint.
    pub adopted: u64,
}

/// A count at a moment at which every record was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    level: u64,
    transitions: u64,
}

/// What a reconciliation in a quiet moment found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Finding {
    drift: i64,
    transitions: u64,
    lost: u64,
}

/// Server-side connections of one endpoint.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) series: Series,
    pub(super) evidence: Evidence,
    pub(super) agreement: Agreement,
    /// Namespaces in which a socket at this address was ever listed.
    namespaces: BTreeSet<NamespaceId>,
    /// Entered minus left, as recorded: the kernel's own gauge says the same unless records were lost.
    net: i64,
    transitions: u64,
    last: Option<Finding>,
}

impl Account {
    pub(super) fn transition(&mut self, transition: &SocketTransition) {
        self.evidence = self.evidence.max(Evidence::Transition);
        self.transitions += 1;
        if let Some(change) = gauge_change(transition.old_state, transition.new_state) {
            self.net += change;
            self.series.change(transition.stamp, change);
        }
    }

    /// The address exists in several namespaces, whose sockets the tracepoint can't tell apart. It
    /// stays so: what is in the count by then can't be taken out again.
    pub(super) fn is_ambiguous(&self) -> bool {
        self.namespaces.len() > 1
    }

    pub(super) fn adopt(&mut self, connections: u64) {
        self.series.raise(connections);
        self.agreement.adopted += connections;
    }

    /// Takes note of who lists a socket of `endpoint`.
    pub(super) fn look(&mut self, endpoint: SocketAddr, dumps: &[NamespaceSockets]) {
        let holds = |dump: &&NamespaceSockets| {
            dump.listening.contains(&endpoint) || count(endpoint, dump) > 0
        };
        self.namespaces.extend(dumps.iter().filter(holds).map(|dump| dump.namespace));
        if !self.namespaces.is_empty() {
            self.evidence = Evidence::Socket;
        }
    }

    /// Sets the count to the kernel's own gauge, after records were lost; false when they agreed.
    pub(super) fn resynchronise(&mut self, kernel: i64, stamp: Nanos) -> bool {
        let missed = kernel - self.net;
        if missed == 0 {
            return false;
        }
        self.net = kernel;
        self.series.change(stamp, missed);
        self.agreement.resynchronisations += 1;
        true
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { level: self.series.now(), transitions: self.transitions }
    }

    /// Compares with a dump that was made between `before` and now; `lost` records in all found no
    /// room.
    ///
    /// Each socket of the dump was looked at at some moment in between, so that every number from the
    /// count before to the count after agrees. A difference is booked only when it was found twice
    /// with no transition since before the first time: then nothing was on its way.
    pub(super) fn reconcile(
        &mut self,
        endpoint: SocketAddr,
        before: Mark,
        dumps: &[NamespaceSockets],
        lost: u64,
        now: Nanos,
    ) {
        let only = self.namespaces.first().filter(|_| self.namespaces.len() == 1);
        let dump = dumps.iter().find(|dump| Some(&dump.namespace) == only);
        let Some(listed) = dump.map(|dump| count(endpoint, dump)) else {
            self.agreement.drift = None;
            return;
        };
        let after = self.mark();
        let drift = outside(listed, before.level, after.level);
        self.agreement.drift = Some(drift);
        self.agreement.reconciled_ns = Some(now);
        self.agreement.reconciliations += 1;
        let finding = Finding { drift, transitions: after.transitions, lost };
        let again = before == after && self.last == Some(finding);
        self.last = (before == after).then_some(finding);
        if again && drift != 0 {
            self.series.change(now, drift);
            self.agreement.corrections += 1;
            self.last = None;
        }
    }
}

fn count(endpoint: SocketAddr, dump: &NamespaceSockets) -> u64 {
    let at = dump.connections.iter().filter(|socket| socket.local == endpoint).count();
    u64::try_from(at).unwrap_or(u64::MAX)
}

/// How far `number` lies outside the range that the two others span.
fn outside(number: u64, one: u64, other: u64) -> i64 {
    let nearest = number.clamp(one.min(other), one.max(other));
    let distance = |to: u64, from: u64| i64::try_from(to - from).unwrap_or(i64::MAX);
    if number >= nearest { distance(number, nearest) } else { -distance(nearest, number) }
}
