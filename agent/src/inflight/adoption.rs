//! Connections that are older than the watch of their endpoint: than the agent, or than the reload that
//! brought the endpoint.
//!
//! The kernel programs are told of an endpoint first, sockets are listed after that, so that a connection
//! may be told of twice: by its entry into the connected states, and by the list. Neither the list's instant
//! nor the stamps decide, because a dump has no instant: each of its sockets is looked at at some
//! moment of the call. What decides is the first transition that was recorded for the pair of
//! addresses since the programs know the endpoint; the kernel writes the transitions of one socket in order.
//!
//! - It enters the connected states: the connection is younger than the agent and counted by that
//!   transition, whether the list holds it or not.
//! - It begins inside them: the connection was open at the attachment. It is adopted, whether the list
//!   still holds it or not; its end, recorded or yet to come, takes it away again.
//! - There is none, and the list holds it: it was open at the attachment, and is adopted.
//!
//! A pair of addresses that is used again while the list is made changes nothing: its first transition
//! still tells about the connection that was there first.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;

use super::sockets::is_connected;
use crate::capture::SocketTransition;
use crate::sockdiag::NamespaceSockets;

/// First transitions kept; the time between attachment and list is short.
const MOST: usize = 262_144;

/// Endpoint and peer.
type Pair = (SocketAddr, SocketAddr);

/// First transitions since endpoints are watched: true for a connection that was there before.
#[derive(Debug)]
pub(super) struct Adoption {
    endpoints: BTreeSet<SocketAddr>,
    older: HashMap<Pair, bool>,
}

impl Adoption {
    /// For endpoints that are watched from now on.
    pub(super) fn of(endpoints: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self { endpoints: endpoints.into_iter().collect(), older: HashMap::new() }
    }

    /// Takes note of a server-side transition.
    pub(super) fn saw(&mut self, transition: &SocketTransition) {
        if !self.endpoints.contains(&transition.local) {
            return;
        }
        let older = is_connected(transition.old_state);
        if (older || is_connected(transition.new_state)) && self.older.len() < MOST {
            self.older.entry((transition.local, transition.remote)).or_insert(older);
        }
    }

    /// Connections to adopt, per endpoint, once every transition from before the end of the dump has
    /// been seen.
    pub(super) fn merge(self, dumps: &[NamespaceSockets]) -> BTreeMap<SocketAddr, u64> {
        let listed = dumps.iter().flat_map(|dump| &dump.connections);
        let mut adopted: HashSet<Pair> = listed
            .map(|socket| (socket.local, socket.remote))
            .filter(|pair| self.endpoints.contains(&pair.0) && !self.older.contains_key(pair))
            .collect();
        adopted.extend(self.older.into_iter().filter(|(_, older)| *older).map(|(pair, _)| pair));
        let mut count = BTreeMap::new();
        for (endpoint, _) in adopted {
            *count.entry(endpoint).or_insert(0) += 1;
        }
        count
    }
}
